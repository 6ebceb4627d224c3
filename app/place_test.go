package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"countersign/app/control"
)

func TestACountersignThatDoesNotAnswerIsNotTakenForNone(t *testing.T) {
	dir := t.TempDir()
	g := &global{DataDir: filepath.Join(dir, "data")}
	p := place{data: g.DataDir, config: filepath.Join(dir, "config")}
	ask := func() error {
		return g.asking(func(ctx context.Context, client *control.Client) error {
			_, err := client.Status(ctx)
			return err
		})
	}
	var none *control.NotRunning
	if err := ask(); !errors.As(err, &none) {
		t.Errorf("before there was any: %v", err)
	}
	release, err := p.open()
	if err != nil {
		t.Fatal(err)
	}
	var silent *silent
	if err := ask(); !errors.As(err, &silent) {
		t.Errorf("beside one that has opened no socket: %v", err)
	}
	release()
	if err := ask(); !errors.As(err, &none) {
		t.Errorf("after its end: %v", err)
	}
}
