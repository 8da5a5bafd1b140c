module mongodyno/drivers/go

go 1.25.0

require (
	go.mongodb.org/mongo-driver/v2 v2.10.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
)
