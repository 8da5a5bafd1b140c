package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	noBatch       = math.MaxUint32
	producerShift = 40
	positionLost  = 136
	// Pings before ready, one after the other, so that all drivers start equally warm.
	pings = 100
	// Largest number of failed inserts with an event each.
	maxReported = 20
	spin        = 50 * time.Microsecond
	// An idle runtime waits in whole milliseconds, so a thread sleeps for this long before an intended start.
	coarse = 2 * time.Millisecond
	// Time for answers to inserts in flight after a stop request.
	grace       = 2 * time.Second
	recordBytes = 32
	unbounded   = 0
)

// usage is the error of an unknown or malformed option.
type usage struct{ error }

func usagef(format string, arguments ...any) usage {
	return usage{fmt.Errorf(format, arguments...)}
}

// options of both roles; each role accepts only its own names.
type options struct {
	database, collection, output, clock, schedule, journal, writeConcern, mode string
	messages, first                                                            int64
	pool, producer, size, inFlight, producers, awaitMs, batchSize              int64
	pollMs, delayUs                                                            int64
	idle                                                                       time.Duration
	uri                                                                        string
}

type parser func(text string) error

func whole(to *int64, low, high int64) parser {
	return func(text string) error {
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil || value < low || value > high || strings.HasPrefix(text, "+") {
			return fmt.Errorf("must be a whole number from %d to %d", low, high)
		}
		*to = value
		return nil
	}
}

func oneOf(to *string, words ...string) parser {
	return func(text string) error {
		if len(words) > 0 && !slices.Contains(words, text) {
			return fmt.Errorf("must be one of %s", strings.Join(words, ", "))
		}
		*to = text
		return nil
	}
}

// parse parses pairs of a name and a value.
func parse(role string, arguments []string) (*options, error) {
	o := &options{
		clock: "monotonic", mode: "tailable", writeConcern: "1", messages: -1,
		pool: 100, inFlight: 1, producers: 1, awaitMs: 1000, pollMs: 1, idle: 30 * time.Second,
	}
	const most = 1<<producerShift - 1
	known := map[string]parser{
		"database": oneOf(&o.database), "collection": oneOf(&o.collection), "output": oneOf(&o.output),
		"messages": whole(&o.messages, 0, most), "pool": whole(&o.pool, 1, 100_000),
		"clock": oneOf(&o.clock, "monotonic", "realtime"),
	}
	if role == "produce" {
		known["producer"] = whole(&o.producer, 0, 65535)
		known["first"] = whole(&o.first, 0, most)
		known["size"] = whole(&o.size, 0, 16_000_000)
		known["in-flight"] = func(text string) error {
			if text == "unbounded" {
				o.inFlight = unbounded
				return nil
			}
			return whole(&o.inFlight, 1, 1_000_000)(text)
		}
		known["write-concern"] = func(text string) error {
			var number int64
			o.writeConcern = text
			if text == "majority" {
				return nil
			}
			return whole(&number, 0, 50)(text)
		}
		known["journal"] = oneOf(&o.journal, "true", "false")
		known["schedule"] = oneOf(&o.schedule)
	} else {
		known["mode"] = oneOf(&o.mode, "tailable", "change-stream", "poll")
		known["producers"] = whole(&o.producers, 1, 65536)
		known["await-ms"] = whole(&o.awaitMs, 1, 3_600_000)
		known["batch-size"] = whole(&o.batchSize, 1, 1_000_000)
		known["poll-ms"] = whole(&o.pollMs, 0, 3_600_000)
		known["delay-us"] = whole(&o.delayUs, 0, 1_000_000_000)
		known["idle-s"] = func(text string) error {
			seconds, err := strconv.ParseFloat(text, 64)
			if err != nil || !(seconds > 0 && seconds < 1e9) {
				return errors.New("must be above 0")
			}
			o.idle = time.Duration(seconds * float64(time.Second))
			return nil
		}
	}
	for at := 0; at < len(arguments); at += 2 {
		name, dashes := strings.CutPrefix(arguments[at], "--")
		take, exists := known[name]
		if !dashes || !exists {
			return nil, usagef("unknown option `%s`", arguments[at])
		}
		if at+1 == len(arguments) {
			return nil, usagef("option `--%s` needs a value", name)
		}
		if err := take(arguments[at+1]); err != nil {
			return nil, usagef("option `--%s`: `%s` %w", name, arguments[at+1], err)
		}
	}
	for name, missing := range map[string]bool{
		"database": o.database == "", "collection": o.collection == "", "output": o.output == "", "messages": o.messages < 0,
	} {
		if missing {
			return nil, usagef("option `--%s` is missing", name)
		}
	}
	if o.uri = os.Getenv("DYNO_URI"); o.uri == "" {
		return nil, usagef("the environment variable DYNO_URI is missing")
	}
	return o, nil
}

// loadSchedule returns intended starts in ns after the start instant, nil for a closed loop.
func loadSchedule(o *options) ([]int64, error) {
	if o.schedule == "" {
		return nil, nil
	}
	data, err := os.ReadFile(o.schedule)
	if err != nil {
		return nil, usagef("option `--schedule`: %w", err)
	}
	if int64(len(data)/8) < o.messages {
		return nil, usagef("option `--schedule`: %d entries for %d messages", len(data)/8, o.messages)
	}
	schedule := make([]int64, len(data)/8)
	return schedule, binary.Read(bytes.NewReader(data), binary.LittleEndian, schedule)
}

// padding returns the same bytes in every driver.
func padding(size int64) []byte {
	state, pad := uint32(42), make([]byte, size)
	for at := range pad {
		state = state*1664525 + 1013904223
		pad[at] = byte(state >> 24)
	}
	return pad
}

// now reads the clock shared by all programs of a run; time.Now has no absolute monotonic reading.
func (o *options) now() int64 {
	id := int32(unix.CLOCK_MONOTONIC)
	if o.clock == "realtime" {
		id = unix.CLOCK_REALTIME
	}
	var at unix.Timespec
	if err := unix.ClockGettime(id, &at); err != nil {
		panic(err)
	}
	return at.Nano()
}

var output sync.Mutex

func emit(event any) {
	line, _ := json.Marshal(event)
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(line))
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, strings.Join(strings.Fields(err.Error()), " "))
	os.Exit(code)
}

// control is the barrier on standard input, and all stop requests.
type control struct {
	startNs  atomic.Int64
	exitCode atomic.Int32
	once     sync.Once
	stopped  chan struct{}
	started  chan struct{}
}

func newControl() *control {
	c := &control{stopped: make(chan struct{}), started: make(chan struct{})}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for range signals {
			c.stop(130)
		}
	}()
	return c
}

func (c *control) stop(code int32) {
	if c.startNs.Load() == 0 {
		os.Exit(int(code))
	}
	c.once.Do(func() {
		c.exitCode.Store(code)
		close(c.stopped)
	})
}

func (c *control) stopping() bool {
	select {
	case <-c.stopped:
		return true
	default:
		return false
	}
}

// ready reports readiness, and waits for the start.
func (c *control) ready() {
	fmt.Println("ready")
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			words := strings.Fields(lines.Text())
			switch {
			case len(words) == 2 && words[0] == "start" && c.startNs.Load() == 0:
				if at, err := strconv.ParseInt(words[1], 10, 64); err == nil {
					c.startNs.Store(at)
					close(c.started)
				}
			case len(words) == 1 && words[0] == "stop":
				c.stop(0)
			}
		}
		// Without a start, nothing is sent.
		if c.startNs.Load() == 0 {
			os.Exit(0)
		}
	}()
	<-c.started
}

// sleep returns false if a stop request ended it.
func (c *control) sleep(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.stopped:
		return false
	}
}

// waitUntil returns false if a stop request ended the wait.
func (c *control) waitUntil(now func() int64, at int64) bool {
	for left := time.Duration(at - now()); left > 0; left = time.Duration(at - now()) {
		switch {
		case left > coarse:
			if !c.sleep(left - coarse) {
				return false
			}
		case left > spin:
			pause := unix.NsecToTimespec((left - spin).Nanoseconds())
			_ = unix.Nanosleep(&pause, nil)
		}
	}
	return !c.stopping()
}

// stamps are records of 32 bytes, on disk after at most a second.
type stamps struct {
	lock   sync.Mutex
	file   *os.File
	buffer *bufio.Writer

	closed       bool
	sent, failed int64
}

func newStamps(path string) (*stamps, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, usagef("option `--output`: %w", err)
	}
	s := &stamps{file: file, buffer: bufio.NewWriterSize(file, 1<<16)}
	go func() {
		for range time.Tick(500 * time.Millisecond) {
			s.flush()
		}
	}()
	return s, nil
}

func (s *stamps) flush() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.buffer.Flush(); err != nil {
		fail(1, fmt.Errorf("cannot write stamps: %w", err))
	}
}

// produced returns whether to report this failure as an event.
func (s *stamps) produced(n, intendedNs, sendNs, endedNs int64, failed bool) bool {
	acknowledgedNs := endedNs
	if failed {
		acknowledgedNs = -endedNs
	}
	var record [recordBytes]byte
	for at, value := range []int64{n, intendedNs, sendNs, acknowledgedNs} {
		binary.LittleEndian.PutUint64(record[8*at:], uint64(value))
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed {
		return false
	}
	// The buffer keeps an error, and its flush reports it.
	_, _ = s.buffer.Write(record[:])
	if !failed {
		s.sent++
		return false
	}
	s.failed++
	return s.failed <= maxReported
}

// close returns a producer's last event. Later answers have no stamp and are not counted.
func (s *stamps) close() any {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.closed = true
	return map[string]any{"event": "done", "messages": s.sent, "failed": s.failed}
}

func (s *stamps) consumed(n, sendNs, receivedNs int64, producer, batch uint32) {
	var record [recordBytes]byte
	for at, value := range []int64{n, sendNs, receivedNs} {
		binary.LittleEndian.PutUint64(record[8*at:], uint64(value))
	}
	binary.LittleEndian.PutUint32(record[24:], producer)
	binary.LittleEndian.PutUint32(record[28:], batch)
	s.lock.Lock()
	defer s.lock.Unlock()
	_, _ = s.buffer.Write(record[:])
}
