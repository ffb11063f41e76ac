module millpond-interop

go 1.24.0

require github.com/plgd-dev/go-coap/v3 v3.5.4

require (
	github.com/dsnet/golib/memfile v1.0.0 // indirect
	github.com/pion/dtls/v3 v3.1.2 // indirect
	github.com/pion/logging v0.2.4 // indirect
	github.com/pion/transport/v4 v4.0.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/crypto v0.45.0 // indirect
	golang.org/x/exp v0.0.0-20240904232852-e7e105dedf7e // indirect
	golang.org/x/net v0.47.0 // indirect
	golang.org/x/sync v0.11.0 // indirect
	golang.org/x/sys v0.38.0 // indirect
)
