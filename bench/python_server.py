"""The best that a server in Python does: one process, async, orjson, one thread of TensorFlow, nothing for the garbage collector.

    python_server.py MODEL PORT
"""

import gc
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import orjson  # noqa: E402
import tensorflow as tf  # noqa: E402
import uvicorn  # noqa: E402

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
loaded = tf.saved_model.load(sys.argv[1])
predict = loaded.signatures["serving_default"]
HEADERS = [(b"content-type", b"application/json")]


async def app(scope, receive, send):
    body = b""
    while True:
        part = await receive()
        body += part.get("body", b"")
        if not part.get("more_body"):
            break
    image = np.array(orjson.loads(body)["instances"], np.float32)
    outputs = predict(image=tf.constant(image))
    names = sorted(outputs)
    columns = [outputs[name].numpy().tolist() for name in names]
    answer = orjson.dumps({"predictions": [dict(zip(names, row)) for row in zip(*columns)]})
    await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, (b"content-length", str(len(answer)).encode())]})
    await send({"type": "http.response.body", "body": answer})


predict(image=tf.zeros([1, 28, 28, 1]))
gc.collect()
gc.freeze()
uvicorn.run(app, port=int(sys.argv[2]), log_level="error", loop="uvloop", http="httptools", lifespan="off", access_log=False)
