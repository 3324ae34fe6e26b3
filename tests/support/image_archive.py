"""What an image says of itself: in an archive that script/image has written, and in the Dockerfile that is to make the same one."""

import json
import re
import tarfile


def config_of(archive):
    with tarfile.open(archive) as tar:
        [about] = json.load(tar.extractfile("manifest.json"))
        return json.load(tar.extractfile(about["Config"]))["config"]


def config_said_by(dockerfile):
    said = dict(re.findall(r"^([A-Z]+) (.*)$", dockerfile.read_text(), re.M))
    return {"User": said["USER"], "Entrypoint": json.loads(said["ENTRYPOINT"]), "WorkingDir": said["WORKDIR"],
            "Env": said["ENV"].split()}
