package main

import "time"

const (
	blind = "blind"
	// While a cursor is silent, what is missing is asked for so often.
	askEvery = time.Second
	// So long after a query that found what the cursor lacks, a cursor that still brings nothing is blind.
	blindAfter = 100 * time.Millisecond
)

// sight says whether a tailable cursor that is silent is blind: "Blind cursors" in drivers/README.md.
type sight struct {
	askedNs, openedNs, heardNs int64
	// What was sent later cannot have been skipped.
	afterNs int64
	// Messages that queries found since the cursor's last one, and the start of the oldest.
	missed, missedNs int64
	// When one was found that proves something; 0 if none was.
	suspectNs int64
}

func (s *sight) opened(nowNs int64) {
	s.openedNs, s.afterNs = nowNs, nowNs+catchUpAfter.Nanoseconds()
	s.heard(0, nowNs)
}

// heard has the cursor bring a message.
func (s *sight) heard(sentNs, nowNs int64) {
	s.heardNs, s.afterNs = nowNs, max(s.afterNs, sentNs)
	s.missed, s.suspectNs = 0, 0
}

// asks says whether it is time for a query; the cursor is silent.
func (s *sight) asks(nowNs int64) bool {
	if nowNs-s.askedNs < askEvery.Nanoseconds() {
		return false
	}
	s.askedNs = nowNs
	return true
}

// found has a query find a message that the cursor has not brought.
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

// isBlind looks at a cursor that, asked after the last query, has answered with nothing.
func (s *sight) isBlind(nowNs int64) bool {
	return s.suspectNs != 0 && nowNs-s.suspectNs >= blindAfter.Nanoseconds()
}

// lost says why the cursor is opened again.
func (s *sight) lost(nowNs int64) *lost {
	text := "the cursor did not bring what queries found"
	return &lost{reason: blind, text: text, blindNs: nowNs - s.missedNs, found: s.missed}
}
