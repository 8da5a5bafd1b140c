// Producer and consumer of `dyno tail` on the Go driver: a goroutine for each insert in flight.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	mongoOptions "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

const driverPath = "go.mongodb.org/mongo-driver/v2"

func version() {
	driverVersion := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == driverPath {
				driverVersion = strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	emit(map[string]any{
		"contract": 1, "language": "go", "driver": "mongo-driver", "driver_version": driverVersion,
		"runtime": "Go", "runtime_version": strings.TrimPrefix(runtime.Version(), "go"),
		"roles": []string{"produce", "consume"}, "in_flight": []string{"one", "bounded", "unbounded"},
		"unbounded": "driver", "modes": []string{"tailable", "change-stream", "poll"}, "pool": true,
	})
}

func connect(o *options, produces bool) (*mongo.Collection, error) {
	settings := mongoOptions.Client().ApplyURI(o.uri).SetMaxPoolSize(uint64(o.pool)).SetAppName("dyno")
	wait := 5 * time.Second
	if settings.ServerSelectionTimeout != nil {
		wait = *settings.ServerSelectionTimeout
	}
	// This driver has one limit for both the wait for a server and the wait for a connection, which is the producer's
	// own queue. So a producer sets the limit only for its first server.
	settings.SetServerSelectionTimeout(wait)
	if produces {
		settings.SetServerSelectionTimeout(24 * time.Hour)
	}
	client, err := mongo.Connect(settings)
	if err != nil {
		return nil, err
	}
	for ping := range pings {
		ctx, cancel := context.Background(), func() {}
		if ping == 0 {
			ctx, cancel = context.WithTimeout(ctx, wait)
		}
		err := client.Ping(ctx, nil)
		cancel()
		if err != nil {
			return nil, err
		}
	}
	collection := mongoOptions.Collection()
	if o.writeConcern != "" {
		concern := &writeconcern.WriteConcern{W: o.writeConcern}
		if number, err := strconv.Atoi(o.writeConcern); err == nil {
			concern.W = number
		}
		if o.journal != "" {
			journal := o.journal == "true"
			concern.Journal = &journal
		}
		collection.SetWriteConcern(concern)
	}
	return client.Database(o.database).Collection(o.collection, collection), nil
}

// describe returns an error's server code, or nil, and its text.
func describe(err error) (any, string) {
	var server mongo.ServerError
	if errors.As(err, &server) && len(server.ErrorCodes()) > 0 {
		return server.ErrorCodes()[0], err.Error()
	}
	return nil, err.Error()
}

func run(role string, arguments []string) error {
	o, err := parse(role, arguments)
	if err != nil {
		return err
	}
	schedule, err := loadSchedule(o)
	if err != nil {
		return err
	}
	stamps, err := newStamps(o.output)
	if err != nil {
		return err
	}
	c := newControl()
	collection, err := connect(o, role == "produce")
	if err != nil {
		fail(4, fmt.Errorf("cannot use the server: %w", err))
	}
	var done any
	if role == "produce" {
		p := &producer{options: o, control: c, stamps: stamps, collection: collection, schedule: schedule}
		p.pad = bson.Binary{Data: padding(o.size)}
		c.ready()
		done = p.run()
	} else {
		consumer := newConsumer(o, c, stamps, collection)
		if err := consumer.open(""); err != nil {
			fail(4, fmt.Errorf("cannot use the server: %w", err))
		}
		c.ready()
		done = consumer.run()
	}
	stamps.flush()
	emit(done)
	os.Exit(int(c.exitCode.Load()))
	return nil
}

func main() {
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	switch role {
	case "version":
		version()
	case "produce", "consume":
		if err := run(role, os.Args[2:]); err != nil {
			fail(2, err)
		}
	default:
		fail(2, fmt.Errorf("`%s` is not one of version, produce, consume", role))
	}
}
