// Every Go program of a Kubernetes control plane and node in one binary: they share most of their code, so one link is
// quicker and a third of the size. Which one it is, its name says: the build makes a symbolic link for each.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	_ "k8s.io/component-base/metrics/prometheus/clientgo" // apiserver, kubelet: rest_client_* in /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info in /metrics
)

func main() {
	servers := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-proxy":              proxy.NewProxyCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	}
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kubectl":
		logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)) // before the flags are parsed, as kubectl's own main does
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	default:
		command, known := servers[name]
		if !known {
			fmt.Fprintf(os.Stderr, "hyperkube: no program is called %q\n", name)
			os.Exit(2)
		}
		os.Exit(cli.Run(command()))
	}
}
