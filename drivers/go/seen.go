package main

import (
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	// Largest number of missing messages that a filter lists one by one; lower ones are requested as a range.
	named = 4096
	// Numbers in one word of the record of received messages.
	word = 64
)

// seen records received messages, and builds the filter for missing ones: inserts in flight overtake each other.
type seen struct {
	count, duplicates int64
	producers         map[int32]*progress
	// Messages that a query found before the cursor returned them.
	queried map[identity]struct{}
}

type identity struct {
	producer int32
	n        int64
}

// progress has one bit for each number of a producer, in words; empty words are omitted.
type progress struct {
	newest int64
	came   map[int64]uint64
}

// mark returns false if the number was marked before.
func (p *progress) mark(n int64) bool {
	bit := uint64(1) << (n % word)
	came := p.came[n/word]
	p.newest = max(p.newest, n)
	if came&bit != 0 {
		return false
	}
	p.came[n/word] = came | bit
	return true
}

// overtaken returns the newest overtaken messages, and the number below which there may be more.
func (p *progress) overtaken() (missing []int64, below int64) {
	for upper := p.newest; upper >= 0; upper -= upper%word + 1 {
		came := p.came[upper/word]
		if came == ^uint64(0) {
			continue
		}
		for n := upper; n >= upper-upper%word; n-- {
			if came&(1<<(n%word)) != 0 {
				continue
			}
			if missing = append(missing, n); len(missing) == named {
				return missing, n
			}
		}
	}
	return missing, 0
}

// accept returns whether the message is new. A message that the cursor returns after a query found it, or that a
// query finds again, does not count as a duplicate.
func (s *seen) accept(producer int32, n int64, byQuery bool) bool {
	state := s.producers[producer]
	if state == nil {
		state = &progress{newest: -1, came: map[int64]uint64{}}
		s.producers[producer] = state
	}
	id := identity{producer, n}
	if state.mark(n) {
		if byQuery {
			s.queried[id] = struct{}{}
		}
		s.count++
		return true
	}
	if byQuery {
		return false
	}
	if _, queried := s.queried[id]; queried {
		delete(s.queried, id)
	} else {
		s.duplicates++
	}
	return false
}

// filter finds all missing messages; without newer, only overtaken ones.
func (s *seen) filter(newer bool) bson.D {
	if len(s.producers) == 0 {
		return bson.D{}
	}
	clauses, overtaken := bson.A{}, bson.A{}
	var above bson.D
	for _, producer := range slices.Sorted(maps.Keys(s.producers)) {
		first := int64(producer) << producerShift
		if newer && first > 0 {
			between := append(slices.Clone(above), bson.E{Key: "$lt", Value: first})
			clauses = append(clauses, bson.D{{Key: "_id", Value: between}})
		}
		above = bson.D{{Key: "$gt", Value: first + s.producers[producer].newest}}
		missing, below := s.producers[producer].overtaken()
		for _, n := range missing {
			overtaken = append(overtaken, first+n)
		}
		if below > 0 {
			older := bson.D{{Key: "$gte", Value: first}, {Key: "$lt", Value: first + below}}
			clauses = append(clauses, bson.D{{Key: "_id", Value: older}})
		}
	}
	if newer {
		clauses = append(clauses, bson.D{{Key: "_id", Value: above}})
	}
	clauses = append(clauses, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: overtaken}}}})
	return bson.D{{Key: "$or", Value: clauses}}
}
