"""ElasticDL's tutorial: its data, and its command line with other images and paths. The records are drawn as iris has them."""

import pathlib
import random

from data_master import client_python

JOB = "test-iris-estimator"
# What a client imports beyond TensorFlow's own packages.
PARTS = ["elasticai_api", "easydl", "packaging", "psutil", "typing_extensions.py"]
# The 1.0.0 client was made by a protobuf that is older than TensorFlow's.
OLD_PROTOBUF = ("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")


def write_data(folder):
    draw = random.Random(1)
    means = {"Iris-setosa": (5.0, 3.4, 1.5, 0.2), "Iris-versicolor": (5.9, 2.8, 4.3, 1.3), "Iris-virginica": (6.6, 3.0, 5.5, 2.0)}
    rows = [",".join(f"{draw.gauss(mean, 0.4):.1f}" for mean in of_one) + f",{name}" for name, of_one in means.items() for _ in range(50)]
    (folder / "iris.data").write_text("\n".join(rows) + "\n")


def client_parts(client):
    """Where the packages of a published client lie: edl-1.0, edl-1.4."""
    packages = next(pathlib.Path(client_python(client)).parents[1].glob("lib/python3*/site-packages"))
    return [packages / name for name in PARTS if (packages / name).exists()]


def command(data, master="elasticdl:1.0.0", worker="elasticdl:iris_estimator"):
    """The words of the tutorial, after the program's name."""
    return ["train", f"--image_name={master}", f"--worker_image={worker}", f"--ps_image={worker}",
            "--job_command=python -m model_zoo.iris.dnn_estimator",
            "--master_resource_request=cpu=0.2,memory=1024Mi", "--master_resource_limit=cpu=1,memory=2048Mi", "--num_ps=1",
            "--ps_resource_request=cpu=0.2,memory=1024Mi", "--ps_resource_limit=cpu=1,memory=2048Mi", "--num_workers=1",
            "--worker_resource_request=cpu=0.3,memory=1024Mi", "--worker_resource_limit=cpu=1,memory=2048Mi",
            "--chief_resource_request=cpu=0.3,memory=1024Mi", "--chief_resource_limit=cpu=1,memory=2048Mi", "--num_evaluator=1",
            "--evaluator_resource_request=cpu=0.3,memory=1024Mi", "--evaluator_resource_limit=cpu=1,memory=2048Mi",
            f"--job_name={JOB}", "--image_pull_policy=Never", "--distribution_strategy=ParameterServerStrategy",
            "--need_tf_config=true", f"--volume=host_path={data},mount_path=/data"]
