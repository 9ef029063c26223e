// A plugin on the server stack that plugins of CloudNativePG are made with, for tests: identity, lifecycle and reconciler hooks.
package main

import (
	"fmt"
	"os"

	"github.com/cloudnative-pg/cnpg-i-machinery/pkg/pluginhelper/http"
	"github.com/cloudnative-pg/cnpg-i/pkg/lifecycle"
	"github.com/cloudnative-pg/cnpg-i/pkg/operator"
	"github.com/cloudnative-pg/cnpg-i/pkg/reconciler"
	"google.golang.org/grpc"
)

func main() {
	answers := &Answers{}
	command := http.CreateMainCmd(Identity{answers: answers}, func(server *grpc.Server) error {
		lifecycle.RegisterOperatorLifecycleServer(server, Lifecycle{answers: answers})
		reconciler.RegisterReconcilerHooksServer(server, Reconciler{answers: answers})
		operator.RegisterOperatorServer(server, Operator{answers: answers})
		return nil
	})
	command.Use = "cnpg-plugin"
	command.SilenceUsage = true
	command.Flags().StringVar(&answers.file, "answers", "", "JSON file that says how to answer; it is read with every call")
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
