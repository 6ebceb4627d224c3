package ui

import (
	"sync"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
)

// testApp is the one app of all tests, and remembers what it measured. A new one
// reads all fonts anew; and Fyne forgets what it has measured whenever a row of a
// list is made, though to measure a word takes it a millisecond, most of the time
// that a small test would take.
var testApp = sync.OnceValue(func() fyne.App {
	app := test.NewApp()
	measured := &measuredApp{App: app, driver: &measuredDriver{Driver: app.Driver(), sizes: map[measuredText]measuredSize{}}}
	fyne.SetCurrentApp(measured)
	app.Settings().SetTheme(NewTheme())
	return measured
})

type measuredApp struct {
	fyne.App
	driver fyne.Driver
}

func (a *measuredApp) Driver() fyne.Driver { return a.driver }

// measuredDriver measures every text once. The fonts never change.
type measuredDriver struct {
	fyne.Driver
	mu    sync.Mutex
	sizes map[measuredText]measuredSize
}

type measuredText struct {
	text  string
	size  float32
	style fyne.TextStyle
	font  string
}

type measuredSize struct {
	size     fyne.Size
	baseline float32
}

func (d *measuredDriver) RenderedTextSize(text string, size float32, style fyne.TextStyle, source fyne.Resource) (fyne.Size, float32) {
	key := measuredText{text, size, style, ""}
	if source != nil {
		key.font = source.Name()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := d.sizes[key]
	if !ok {
		m.size, m.baseline = d.Driver.RenderedTextSize(text, size, style, source)
		d.sizes[key] = m
	}
	return m.size, m.baseline
}
