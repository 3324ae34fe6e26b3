"""The command lines of the components, and the files they read. Nothing is started here."""

import json

from lab import addresses
from lab.state import PORT


def audit_policy(everybody):
    """Who said what of whom, without the bodies; every request once, when it is answered."""
    whose = {} if everybody else {"userGroups": ["system:serviceaccounts"]}
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", **whose}]}


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def etcd(cluster):
    pki, client, peer = cluster.dir / "pki", f"https://{cluster.address}:2379", f"https://{cluster.address}:2380"
    trust = [word for kind in ("", "peer-") for word in
             (f"--{kind}cert-file={pki}/etcd.crt", f"--{kind}key-file={pki}/etcd.key",
              f"--{kind}trusted-ca-file={pki}/ca.crt", f"--{kind}client-cert-auth")]
    return [cluster.program("etcd"), "--name=etcd", f"--data-dir={cluster.dir}/etcd", "--log-level=warn",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=etcd={peer}", *trust,
            *([] if cluster.fsync else ["--unsafe-no-fsync"])]


def apiserver(cluster):
    pki = cluster.dir / "pki"
    words = [cluster.program("kube-apiserver"), f"--bind-address={cluster.address}", f"--secure-port={PORT}",
             f"--etcd-servers=https://{cluster.address}:2379", f"--etcd-cafile={pki}/ca.crt",
             f"--etcd-certfile={pki}/etcd.crt", f"--etcd-keyfile={pki}/etcd.key",
             f"--client-ca-file={pki}/ca.crt", f"--tls-cert-file={pki}/apiserver.crt",
             f"--tls-private-key-file={pki}/apiserver.key",
             "--service-account-issuer=https://kubernetes.default.svc",
             f"--service-account-signing-key-file={pki}/tokens.key", f"--service-account-key-file={pki}/tokens.pub",
             f"--service-cluster-ip-range={addresses.services(cluster.number)}",
             "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
             "--allow-privileged=true", "--profiling=false"]
    if cluster.nodes:
        words += [f"--advertise-address={cluster.address}", f"--kubelet-client-certificate={pki}/admin.crt",
                  f"--kubelet-client-key={pki}/admin.key", "--kubelet-preferred-address-types=InternalIP"]
    else:
        # The Service "kubernetes" may not point to a loopback address, and no pod is there to use it.
        words += ["--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none"]
    write_json(cluster.dir / "audit-policy.json", audit_policy(everybody=cluster.audit))
    return [*words, f"--audit-policy-file={cluster.dir}/audit-policy.json", f"--audit-log-path={cluster.dir}/audit.log",
            "--audit-log-maxsize=10000"]  # megabytes: never cut a log that a test counts in


def controller_manager(cluster):
    pki = cluster.dir / "pki"
    return [cluster.program("kube-controller-manager"), f"--kubeconfig={cluster.dir}/controller-manager.conf",
            f"--bind-address={cluster.address}", "--leader-elect=false",
            f"--service-account-private-key-file={pki}/tokens.key", f"--root-ca-file={pki}/ca.crt",
            f"--cluster-signing-cert-file={pki}/ca.crt", f"--cluster-signing-key-file={pki}/ca.key",
            # With accounts of their own, which it must make first, the controllers begin five seconds later.
            "--use-service-account-credentials=false", "--kube-api-qps=1000", "--kube-api-burst=2000",
            *([f"--node-monitor-grace-period={cluster.grace}s", "--node-monitor-period=2s"] if cluster.grace else []),
            # A claim that could not be bound at once is looked at again after that; by itself after 15 s.
            "--pvclaimbinder-sync-period=1s"]


def scheduler(cluster):
    return [cluster.program("kube-scheduler"), f"--kubeconfig={cluster.dir}/scheduler.conf", "--leader-elect=false",
            # With its default of 50 a second it would decide how soon many pods run, whoever makes them.
            f"--bind-address={cluster.address}", "--kube-api-qps=1000", "--kube-api-burst=2000"]
