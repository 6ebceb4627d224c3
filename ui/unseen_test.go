package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"countersign/worker"
)

func TestOneLongLineCountsByTheRowsOfItThatWereNotSeen(t *testing.T) {
	atSizes(t, func(t *testing.T, st *stage) {
		st.show(waitingItems(named(execItem(1, "echo one"+strings.Repeat("; echo another one", 300)))))
		d := st.window.queue.detail
		all := len(d.doc.rows)
		fit := int(d.doc.Size().Height / d.doc.rowHeight())
		if n := d.unseen(); n != all-fit || n < 20 {
			t.Fatalf("%d rows are unseen; there are %d, and %d fit", n, all, fit)
		}
		if want := fmt.Sprintf("Approve with %d rows unseen", all-fit); d.approve.label != want {
			t.Errorf("the button says %q, want %q", d.approve.label, want)
		}
		st.press(fyne.KeyPageDown, 0)
		n := d.unseen()
		if n >= all-fit || n == 0 {
			t.Errorf("%d rows are unseen after a page, before it %d", n, all-fit)
		}
		st.press(fyne.KeyReturn, ctrl)
		st.did(fmt.Sprintf("approve 1 %s by operator, %d rows unseen", d.view.Digest, n))
	})
}

func TestRowsThatWereOnScreenForNoTimeWereNotSeen(t *testing.T) {
	st := newStage(t)
	st.show(waitingItems(execItem(1, strings.Repeat("x\n", 400))))
	d := st.window.queue.detail
	before := d.unseen()
	st.window.win.Resize(fyne.NewSize(1180, 1600))
	st.window.win.Resize(fyne.NewSize(1180, 760))
	if n := d.unseen(); n != before {
		t.Errorf("%d rows are unseen, %d before the window was high for a moment", n, before)
	}
	st.window.win.Resize(fyne.NewSize(1180, 1600))
	st.pass(time.Second)
	st.put(func(*worker.Snapshot) {})
	st.window.win.Resize(fyne.NewSize(1180, 760))
	if n := d.unseen(); n >= before {
		t.Errorf("%d rows are unseen, %d before they could be read in a high window", n, before)
	}
}

func TestWhatWasSeenOfALineStaysSeenInAnotherWidth(t *testing.T) {
	v := newTestView(t)
	v.setLines(numbered("\n"+strings.Repeat("0123456789", 1000)+"\n\nend", body), nil)
	v.look()
	v.page(1)
	part := float64(v.unseen()) / float64(len(v.rows))
	if part == 0 || part == 1 {
		t.Fatalf("%.2f of it is unseen", part)
	}
	v.Resize(fyne.NewSize(400, 300))
	if now := float64(v.unseen()) / float64(len(v.rows)); now > part+0.05 || now < part-0.3 {
		t.Errorf("%.2f of it is unseen, before the resize %.2f", now, part)
	}
}
