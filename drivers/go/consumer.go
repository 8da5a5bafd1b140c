package main

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	mongoOptions "go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	emptyPause   = 5 * time.Millisecond
	backOffFirst = 10 * time.Millisecond
	backOffLast  = time.Second
	// A tailable cursor opened during inserts may skip some of them (seen with the embedded server). Missing messages
	// are requested this long after the opening.
	catchUpAfter = 100 * time.Millisecond
)

// source is the common interface of cursors and change streams.
type source interface {
	TryNext(context.Context) bool
	ID() int64
	Err() error
	RemainingBatchLength() int
	Close(context.Context) error
}

// stream is a change stream that remembers its position.
type stream struct {
	*mongo.ChangeStream
	token *bson.Raw
}

func (s stream) TryNext(ctx context.Context) bool {
	found := s.ChangeStream.TryNext(ctx)
	*s.token = s.ResumeToken()
	return found
}

// lost is the reason for opening a source again.
type lost struct {
	reason, text string
	code         any
	reported     bool
	// For a blind cursor: how long it was blind, and how many messages queries found in that time.
	blindNs, found int64
}

func (l *lost) tell(atNs int64) {
	if l.reported {
		return
	}
	l.reported = true
	event := map[string]any{"event": "reopened", "reason": l.reason, "at_ns": atNs, "code": l.code, "message": l.text}
	if l.reason == blind {
		event["blind_ns"], event["found"] = l.blindNs, l.found
	}
	emit(event)
}

type consumer struct {
	options    *options
	control    *control
	stamps     *stamps
	collection *mongo.Collection

	seen                        seen
	sight                       sight
	source                      source
	token                       bson.Raw
	batch                       uint32
	opened, empty, positionLost int64
	lastNs, lastSentNs          int64
	catchUpNs                   int64
	backOff                     time.Duration
}

func newConsumer(o *options, c *control, s *stamps, collection *mongo.Collection) *consumer {
	return &consumer{
		options: o, control: c, stamps: s, collection: collection, backOff: backOffFirst,
		seen: seen{producers: map[int32]*progress{}, queried: map[identity]struct{}{}},
	}
}

func (c *consumer) open(reason string) (err error) {
	o, ctx := c.options, context.Background()
	await := time.Duration(o.awaitMs) * time.Millisecond
	// After a lost position, read from the oldest message on.
	filter := bson.D{}
	if reason != "position-lost" {
		filter = c.seen.filter(true)
	}
	find := mongoOptions.Find()
	if o.batchSize > 0 {
		find.SetBatchSize(int32(o.batchSize))
	}
	// An interface containing a nil pointer is not nil, so sources are set only without an error.
	switch o.mode {
	case "tailable":
		find.SetCursorType(mongoOptions.TailableAwait).SetMaxAwaitTime(await)
		cursor, failure := c.collection.Find(ctx, filter, find)
		if err = failure; err == nil {
			c.source = cursor
			c.sight.opened(o.now())
			c.catchUpNs = c.sight.openedNs + catchUpAfter.Nanoseconds()
		}
	case "poll":
		cursor, failure := c.collection.Find(ctx, filter, find.SetSort(bson.D{{Key: "_id", Value: 1}}))
		if err = failure; err == nil {
			c.source = cursor
		}
	default:
		watch := mongoOptions.ChangeStream().SetMaxAwaitTime(await)
		if o.batchSize > 0 {
			watch.SetBatchSize(int32(o.batchSize))
		}
		if c.token != nil {
			watch.SetResumeAfter(c.token)
		}
		inserts := bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "operationType", Value: "insert"}}}}}
		opened, failure := c.collection.Watch(ctx, inserts, watch)
		if err = failure; err == nil {
			c.source = stream{opened, &c.token}
		}
	}
	if err == nil {
		c.opened++
	}
	return err
}

func (c *consumer) run() any {
	o := c.options
	c.lastNs = c.control.startNs.Load()
	var why *lost
	idle := false
	for c.seen.count < o.messages && !c.control.stopping() {
		found, err := c.step(why, idle)
		idle = !found
		switch {
		case err != nil:
			why = c.broken(err)
		case found:
			why = nil
		case c.source.ID() == 0 && c.source.RemainingBatchLength() == 0:
			why = c.ended(why)
		case c.isTailable() && c.sight.isBlind(o.now()):
			c.close()
			why = c.sight.lost(o.now())
		}
		if idle && time.Duration(o.now()-c.lastNs) > o.idle {
			c.control.exitCode.Store(5)
			break
		}
	}
	reopened := c.opened - 1
	if o.mode == "poll" {
		reopened = 0
	}
	return map[string]any{
		"event": "done", "messages": c.seen.count, "failed": 0, "reopened": reopened, "reopened_empty": c.empty,
		"position_lost": c.positionLost, "caught_up": len(c.seen.queried), "duplicates_skipped": c.seen.duplicates,
	}
}

// step opens the source if it is closed, and reads one message; false if none is available.
func (c *consumer) step(why *lost, idle bool) (bool, error) {
	o := c.options
	if c.source == nil {
		reason := ""
		if why != nil {
			reason = why.reason
		}
		if err := c.open(reason); err != nil {
			return false, err
		}
		if why != nil {
			why.tell(o.now())
		}
	} else if c.isTailable() && idle && c.sight.asks(o.now()) {
		if err := c.catchUp(true); err != nil {
			return false, err
		}
	} else if c.catchUpNs != 0 && c.lastSentNs > c.catchUpNs {
		c.catchUpNs = 0
		if err := c.catchUp(false); err != nil {
			return false, err
		}
	}
	isNewBatch := c.source.RemainingBatchLength() == 0
	if !c.source.TryNext(context.Background()) {
		return false, c.source.Err()
	}
	if isNewBatch {
		c.batch++
	}
	switch source := c.source.(type) {
	case *mongo.Cursor:
		return true, c.receive(source.Current, c.batch, false)
	case stream:
		return true, c.receive(source.Current.Lookup("fullDocument").Document(), c.batch, false)
	}
	return true, nil
}

func (c *consumer) receive(document bson.Raw, batch uint32, byQuery bool) error {
	receivedNs := c.options.now()
	c.lastNs, c.backOff = receivedNs, backOffFirst
	var received message
	if err := bson.Unmarshal(document, &received); err != nil {
		return err
	}
	c.lastSentNs = min(received.Send, receivedNs)
	isNew := c.seen.accept(received.Producer, received.N, byQuery)
	if !byQuery {
		c.sight.heard(c.lastSentNs, receivedNs)
	} else if isNew {
		c.sight.found(c.lastSentNs, receivedNs)
	}
	if !isNew {
		return nil
	}
	c.stamps.consumed(received.N, received.Send, receivedNs, uint32(received.Producer), batch)
	if c.options.delayUs > 0 {
		c.control.sleep(time.Duration(c.options.delayUs) * time.Microsecond)
	}
	return nil
}

func (c *consumer) isTailable() bool {
	return c.options.mode == "tailable"
}

// catchUp queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent.
func (c *consumer) catchUp(newer bool) error {
	ctx := context.Background()
	cursor, err := c.collection.Find(ctx, c.seen.filter(newer))
	if err != nil {
		return err
	}
	defer cursor.Close(ctx)
	for cursor.Next(ctx) {
		if err := c.receive(cursor.Current, noBatch, true); err != nil {
			return err
		}
	}
	return cursor.Err()
}

// ended handles a cursor that died without an error: everything was read, or a tailable cursor found no message.
func (c *consumer) ended(why *lost) *lost {
	c.close()
	if c.options.mode == "poll" {
		c.control.sleep(time.Duration(c.options.pollMs) * time.Millisecond)
		return nil
	}
	c.empty++
	c.control.sleep(emptyPause)
	reported := why != nil && why.reason == "empty"
	return &lost{reason: "empty", text: "the cursor died without finding a message", reported: reported}
}

func (c *consumer) broken(err error) *lost {
	c.close()
	code, text := describe(err)
	why := &lost{reason: "other", code: code, text: text}
	if code == positionLost {
		c.positionLost++
		why.reason = "position-lost"
		return why
	}
	if mongo.IsNetworkError(err) || mongo.IsTimeout(err) {
		why.reason = "connection"
	}
	c.control.sleep(c.backOff)
	c.backOff = min(2*c.backOff, backOffLast)
	return why
}

func (c *consumer) close() {
	if c.source != nil {
		_ = c.source.Close(context.Background())
		c.source = nil
	}
}
