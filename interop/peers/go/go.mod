module millpond-interop

go 1.24.0

require github.com/plgd-dev/go-coap/v3 v3.5.4
