package main

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// message is one document of the contract.
type message struct {
	ID       int64       `bson:"_id"`
	Producer int32       `bson:"p"`
	N        int64       `bson:"n"`
	Intended int64       `bson:"i"`
	Send     int64       `bson:"s"`
	Pad      bson.Binary `bson:"pad"`
}

type producer struct {
	options    *options
	control    *control
	stamps     *stamps
	collection *mongo.Collection
	schedule   []int64
	pad        bson.Binary
}

func (p *producer) run() any {
	answered := make(chan struct{})
	go func() {
		p.sendAll()
		close(answered)
	}()
	select {
	case <-answered:
	case <-p.afterStop():
	}
	return p.stamps.close()
}

// sendAll returns after all answers.
func (p *producer) sendAll() {
	o, c := p.options, p.control
	var running sync.WaitGroup
	defer running.Wait()
	var slots chan struct{}
	if o.inFlight != unbounded {
		slots = make(chan struct{}, o.inFlight)
	}
	for index := range o.messages {
		dueNs := c.startNs.Load()
		if p.schedule != nil {
			dueNs += p.schedule[index]
		}
		if !c.waitUntil(o.now, dueNs) {
			return
		}
		if slots != nil {
			select {
			case slots <- struct{}{}:
			case <-c.stopped:
			}
		}
		if c.stopping() {
			return
		}
		sendNs := o.now()
		intendedNs := sendNs
		if p.schedule != nil {
			intendedNs = dueNs
		}
		send := func() {
			p.send(o.first+index, intendedNs, sendNs)
			if slots != nil {
				<-slots
			}
		}
		if o.inFlight == 1 {
			send()
		} else {
			running.Go(send)
		}
	}
}

// afterStop is closed when the time for answers after a stop request is over.
func (p *producer) afterStop() <-chan struct{} {
	over := make(chan struct{})
	go func() {
		<-p.control.stopped
		time.Sleep(grace)
		close(over)
	}()
	return over
}

func (p *producer) send(n, intendedNs, sendNs int64) {
	o := p.options
	document := message{
		ID: o.producer<<producerShift + n, Producer: int32(o.producer), N: n,
		Intended: intendedNs, Send: sendNs, Pad: p.pad,
	}
	_, err := p.collection.InsertOne(context.Background(), document)
	if p.stamps.produced(n, intendedNs, sendNs, o.now(), err != nil) {
		code, text := describe(err)
		emit(map[string]any{"event": "failed", "n": n, "code": code, "message": text})
	}
}
