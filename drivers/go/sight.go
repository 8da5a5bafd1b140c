package main

import "time"

const (
	blind = "blind"
	// Interval of queries for missing messages while a cursor is silent.
	askEvery = time.Second
	// A cursor is blind if it still returns nothing this long after a query found messages that it missed.
	blindAfter = 100 * time.Millisecond
)

// sight detects blind tailable cursors; see "Blind cursors" in drivers/README.md.
type sight struct {
	askedNs, openedNs, heardNs int64
	// Messages sent later cannot have been skipped.
	afterNs int64
	// Messages that queries found since the cursor's last one, and the send time of the oldest.
	missed, missedNs int64
	// When a conclusive message was found; 0 if none was.
	suspectNs int64
}

func (s *sight) opened(nowNs int64) {
	s.openedNs, s.afterNs = nowNs, nowNs+catchUpAfter.Nanoseconds()
	s.heard(0, nowNs)
}

// heard records that the cursor returned a message.
func (s *sight) heard(sentNs, nowNs int64) {
	s.heardNs, s.afterNs = nowNs, max(s.afterNs, sentNs)
	s.missed, s.suspectNs = 0, 0
}

// asks returns whether it is time for a query while the cursor is silent.
func (s *sight) asks(nowNs int64) bool {
	if nowNs-s.askedNs < askEvery.Nanoseconds() {
		return false
	}
	s.askedNs = nowNs
	return true
}

// found records that a query found a message that the cursor did not return.
func (s *sight) found(sentNs, nowNs int64) {
	missedNs := max(sentNs, s.heardNs)
	if s.missed == 0 || missedNs < s.missedNs {
		s.missedNs = missedNs
	}
	s.missed++
	if s.suspectNs == 0 && sentNs > s.afterNs {
		s.suspectNs = nowNs
	}
}

// isBlind returns whether the cursor, which returned nothing since the last query, is blind.
func (s *sight) isBlind(nowNs int64) bool {
	return s.suspectNs != 0 && nowNs-s.suspectNs >= blindAfter.Nanoseconds()
}

// lost returns the reason for opening the cursor again.
func (s *sight) lost(nowNs int64) *lost {
	text := "the cursor did not return messages that queries found"
	return &lost{reason: blind, text: text, blindNs: nowNs - s.missedNs, found: s.missed}
}
