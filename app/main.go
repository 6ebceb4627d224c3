package main

import (
	_ "fyne.io/fyne/v2/app"
	_ "fyne.io/fyne/v2/test"
	_ "fyne.io/fyne/v2/widget"
	_ "fyne.io/fyne/v2/driver/desktop"
	_ "github.com/BurntSushi/toml"
	_ "github.com/adrg/xdg"
	_ "github.com/alecthomas/kong"
	_ "github.com/cenkalti/backoff/v5"
	_ "github.com/fsnotify/fsnotify"
	_ "github.com/gen2brain/beeep"
	_ "github.com/godbus/dbus/v5"
	_ "github.com/gofrs/flock"
	_ "github.com/mattn/go-sqlite3"
	_ "github.com/pressly/goose/v3"
	_ "github.com/zalando/go-keyring"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sys/unix"
)

func main() {}
