package worker

// Hurry stops what still runs while the engine quits under ErrQuitWhenDone; it
// is reported as stopped because Countersign is quitting. Nothing starts any
// more, whether Run's context has ended or not.
func (e *Engine) Hurry() { e.quit(errShutdown) }
