// The process that holds a pod's namespaces: it does nothing until it is told to end. As pid 1 of a pod that shares its
// process namespace it also inherits orphans; ignoring SIGCHLD lets the kernel reap them.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signal.Ignore(syscall.SIGCHLD)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
