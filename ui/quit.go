package ui

import (
	"time"

	"fyne.io/fyne/v2/theme"
)

// togglePause pauses without an end, or resumes. UI thread only.
func (u *UI) togglePause() {
	paused := u.snap.Paused
	u.intent(func() error {
		if paused {
			u.Desk.Resume()
		} else {
			u.Desk.Pause(time.Time{})
		}
		return nil
	}, nil)
}

func (u *UI) pauseUntil(end time.Time) {
	u.intent(func() error { u.Desk.Pause(end); return nil }, nil)
}

// tomorrow is when the next working day can be expected to begin: at 8.
func tomorrow(now time.Time) time.Time {
	y, m, d := now.Local().Date()
	return time.Date(y, m, d+1, 8, 0, 0, 0, time.Local)
}

func (u *UI) stopEverything() {
	u.intent(func() error { u.Desk.StopEverything(); return nil }, nil)
}

// askQuit ends the program, but asks first when something runs. UI thread only.
func (u *UI) askQuit() {
	n := len(u.snap.Running)
	if n == 0 {
		u.Quit()
		return
	}
	if !u.visible.Load() {
		u.Show()
	}
	stop := choice{label: "Stop them and quit", key: doStop, tone: theme.ColorNameError, do: u.Quit}
	back := choice{label: "Cancel", key: doLeave}
	title := countWords(n, "command is", "commands are") + " running"
	words := "What waits for you stays in the journal and is shown again at the next start."
	if n == 1 {
		stop.label = "Stop it and quit"
	}
	if u.QuitWhenDone == nil {
		u.window.sheets.show(title, paragraph(words), nil, stop, back)
		return
	}
	wait := choice{label: "Wait, then quit", key: doApprove, tone: theme.ColorNamePrimary, do: func() {
		u.window.say("Quitting when what runs has ended. Nothing new is claimed.")
		u.QuitWhenDone()
	}}
	u.window.sheets.show(title, paragraph(words), nil, wait, stop, back)
}

// closing answers the window's close button: the program goes on where the tray
// leads back to it, and is asked about where nothing visible would.
func (w *window) closing() {
	if w.u.tray.hosted.Load() {
		w.u.hide()
		return
	}
	w.sheets.show("Close the window?",
		paragraph("There is no tray here to come back from. Starting Countersign again opens this window."), nil,
		choice{label: "Keep working in the background", key: doApprove, tone: theme.ColorNamePrimary, do: w.u.hide},
		choice{label: "Quit", key: doQuit, do: w.u.askQuit},
		choice{label: "Cancel", key: doLeave})
}
