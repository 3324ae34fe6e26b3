"""Adds the machine's folders that an image stands for to a container that runc is about to create.

    add_mounts.py TABLE RUNC-ARGUMENTS…

TABLE is a JSON object, image to folders, or whole mounts as config.json has them. The container's bundle is named by --bundle, its image by an annotation that
containerd writes. A program of its own, started by oci-runtime for each container: it imports nothing of the others.
"""

import json
import os
import sys


def main():
    with open(sys.argv[1]) as file:
        table = json.load(file)
    path = os.path.join(sys.argv[sys.argv.index("--bundle") + 1], "config.json")
    with open(path) as file:
        config = json.load(file)
    folders = table.get(config.get("annotations", {}).get("io.kubernetes.cri.image-name", ""), [])
    if not folders:
        return
    # First, so that what the pod mounts itself lies over them.
    config["mounts"] = [each if isinstance(each, dict) else
                        {"destination": each, "source": each, "type": "bind", "options": ["rbind", "ro"]}
                        for each in folders] + config["mounts"]
    with open(path + ".part", "w") as file:
        json.dump(config, file)
    os.rename(path + ".part", path)


if __name__ == "__main__":
    main()
