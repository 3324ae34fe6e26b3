"""The command lines of a node's components, and the files they read. Nothing is started here."""

import json
import pathlib

from lab import addresses, images
from lab.components import write_json

OCI_RUNTIME = pathlib.Path(__file__).resolve().parents[1] / "oci-runtime"


def containerd(node):
    """Its own root, state and socket: a containerd of the machine is not touched."""
    text = json.dumps  # a string in TOML is written as in JSON
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    (node.dir / "containerd.toml").write_text(f"""version = 2
root = {text(f"{node.dir}/containerd")}
state = {text(f"{node.dir}/containerd-state")}
[grpc]
address = {text(f"{node.dir}/containerd.sock")}
[{cri}]
sandbox_image = {text(images.PAUSE)}
restrict_oom_score_adj = true  # root may not be allowed to lower it
disable_apparmor = true
[{cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = {text(f"{node.dir}/cni")}
[{cri}.containerd]
snapshotter = "overlayfs"
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{cri}.containerd.runtimes.runc.options]
BinaryName = {text(str(OCI_RUNTIME))}
""")
    (node.dir / "cni").mkdir()
    # Each pod on a link of its own, routed: no bridge, whose traffic netfilter may not see.
    write_json(node.dir / "cni/10-pods.conflist", {"cniVersion": "0.4.0", "name": "pods", "plugins": [
        {"type": "ptp", "ipam": {"type": "host-local", "dataDir": f"{node.dir}/ipam",
                                 "ranges": [[{"subnet": node.pods}]],
                                 "routes": [{"dst": "0.0.0.0/0"}]}},
        {"type": "portmap", "capabilities": {"portMappings": True}}]})
    return ["containerd", f"--config={node.dir}/containerd.toml"]


def kubelet(node):
    pki = node.cluster.dir / "pki"
    (node.dir / "resolv.conf").touch()  # empty: there is no DNS outside
    write_json(node.dir / "kubelet.json", {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": node.address,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": f"{pki}/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{pki}/kubelet-{node.name}.crt", "tlsPrivateKeyFile": f"{pki}/kubelet-{node.name}.key",
        "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{node.cgroup}", "failCgroupV1": False,
        "failSwapOn": False, "oomScoreAdj": 0,
        "containerRuntimeEndpoint": f"unix://{node.dir}/containerd.sock",
        "clusterDNS": [addresses.dns(node.cluster.number)], "clusterDomain": "cluster.local",
        "resolvConf": f"{node.dir}/resolv.conf",
        "podLogsDir": f"{node.dir}/log/pods", "volumePluginDir": f"{node.dir}/volume-plugins",
        "serializeImagePulls": False, "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%",
                         "nodefs.inodesFree": "1%"},
        "nodeStatusUpdateFrequency": "4s"})
    return [node.cluster.program("kubelet"), f"--config={node.dir}/kubelet.json",
            f"--kubeconfig={node.dir}/kubelet.conf", f"--root-dir={node.dir}/kubelet",
            f"--cert-dir={pki}", f"--hostname-override={node.name}", f"--node-ip={node.address}"]


def proxy(node):
    # Settings of the whole machine: left as they are.
    nothing = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    write_json(node.dir / "proxy.json", {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
        "clientConnection": {"kubeconfig": f"{node.dir}/proxy.conf"}, "clusterCIDR": addresses.pods(node.cluster.number),
        "hostnameOverride": node.name, "oomScoreAdj": 0, "conntrack": nothing})
    return [node.cluster.program("kube-proxy"), f"--config={node.dir}/proxy.json"]


def coredns(cluster):
    """On the node itself. A `template` would come before `kubernetes` in its own server, so it has another."""
    (cluster.dir / "Corefile").write_text(f"""cluster.local:53 in-addr.arpa:53 {{
    errors
    ready {cluster.address}:8181
    kubernetes {{
        kubeconfig {cluster.dir}/coredns.conf test
        ttl 5
    }}
}}
.:53 {{
    template ANY ANY . {{
        rcode NXDOMAIN
    }}
}}
""")
    return [cluster.program("coredns"), f"-conf={cluster.dir}/Corefile"]


def dns_objects(cluster):
    """The Service that pods ask, and where it leads: no pod, so nothing selects one."""
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    yield "/api/v1/namespaces/kube-system/services", {
        "metadata": {"name": "kube-dns"}, "spec": {"clusterIP": addresses.dns(cluster.number), "ports": ports}}
    yield "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", {
        "metadata": {"name": "kube-dns", "labels": {"kubernetes.io/service-name": "kube-dns"}},
        "addressType": "IPv4", "ports": ports, "endpoints": [{"addresses": [cluster.address]}]}
