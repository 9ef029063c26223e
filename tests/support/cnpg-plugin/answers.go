package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Answers is where the plugin is told what to do.
type Answers struct {
	file string
}

// Answer is what a test wants; the zero value of each field is what a good plugin does.
type Answer struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	NotReady bool   `json:"notReady"`
	// Fault is one of: panic, nil-capability, hang, hang-all, slow, huge, not-yet, invalid, garbage.
	Fault string `json:"fault"`
	// Behavior of the reconciler hooks: continue, requeue or terminate.
	Behavior string `json:"behavior"`
	// RequeueAfter in seconds.
	RequeueAfter int64 `json:"requeueAfter"`
}

func (a *Answers) read() Answer {
	answer := Answer{}
	if a.file != "" {
		// What cannot be read is replaced at this moment, or the test is broken: the name says so.
		text, err := os.ReadFile(a.file)
		if err == nil {
			err = json.Unmarshal(text, &answer)
		}
		if err != nil {
			answer.Name = "unreadable.example.com"
		}
	}
	if answer.Name == "" {
		answer.Name = "cnpg.example.com"
	}
	if answer.Version == "" {
		answer.Version = "1.0.0"
	}
	return answer
}

// enter does what goes wrong in a hook.
func (a *Answers) enter(ctx context.Context) (Answer, error) {
	answer := a.read()
	switch answer.Fault {
	case "panic":
		var nothing *Answer
		return *nothing, nil
	case "hang", "hang-all":
		<-ctx.Done()
		return answer, ctx.Err()
	case "slow":
		time.Sleep(300 * time.Millisecond)
	case "not-yet":
		return answer, status.Error(codes.FailedPrecondition, "the backend is not there yet")
	case "invalid":
		return answer, status.Error(codes.InvalidArgument, "what is that?")
	}
	return answer, nil
}
