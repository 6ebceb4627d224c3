package harness

import "context"

// GiveAway gives a claimed, not yet accepted item to another worker with a fresh
// lease, as if the lease had lapsed and that worker had claimed it first. It is
// for trying out what a lost lease looks like. The error says why an item could
// not be given away.
func (h *Harness) GiveAway(ctx context.Context, id, worker string) error {
	now := h.now()
	var holder string
	err := h.pools.reader.QueryRowContext(ctx, `SELECT COALESCE(claimed_by, '') FROM work_items WHERE id = ?`, id).Scan(&holder)
	if err != nil {
		return notFound("There is no item %q.", id)
	}
	return h.held(ctx, id, holder, "claimed", `
		UPDATE work_items SET claimed_by = ?, claimed_at = ?, lease_until = ?
		WHERE id = ? AND claimed_by = ? AND accepted_at IS NULL AND stopped_at IS NULL AND status = 'queued'
		RETURNING session_id`, worker, now, h.leaseFrom(now), id, holder)
}
