// node-coap as a peer: `serve PORT [ADDRESS]`, `serve PORT GROUP INTERFACE ADDRESS`, `measured PORT`, `discover URI` or
// `METHOD URI [PAYLOAD]`. So many GETs: `get*N URI` one after the other, `non*N URI` of those that are not confirmable,
// `open*N URI` all at once.
'use strict'
const coap = require('coap')

const LARGE = Buffer.from(Array.from({ length: 20000 }, (_, i) => 65 + (i % 26)))
const BENCH = Buffer.from('0123456789012345678901234567890123456789')
// Milliseconds after which a request that is not confirmable has no answer.
const PATIENCE = 5000

function serve (port, group, address) {
  let kept = Buffer.alloc(0)
  let count = 0
  let asked = 0
  const observers = new Set()
  setInterval(() => {
    count += 1
    for (const res of observers) res.write(String(count))
  }, 200).unref()

  const options = address ? { type: 'udp4', multicastAddress: group, multicastInterface: address } : { type: 'udp4' }
  const server = coap.createServer(options, (req, res) => {
    const path = req.url.split('?')[0]
    if (path === '/test') {
      const codes = { GET: '2.05', POST: '2.01', PUT: '2.04', DELETE: '2.02', FETCH: '2.05', PATCH: '2.04', iPATCH: '2.04' }
      res.code = codes[req.method]
      res.end(req.method.toLowerCase())
    } else if (path === '/separate') {
      setTimeout(() => res.end('separate'), 1500)
    } else if (path === '/large') {
      res.end(LARGE)
    } else if (path === '/bench') {
      res.end(BENCH)
    } else if (path === '/tally') {
      asked += 1
      res.end(String(asked))
    } else if (path === '/store') {
      if (req.method === 'PUT') {
        kept = req.payload
        res.code = '2.04'
        res.end()
      } else {
        res.end(kept)
      }
    } else if (path === '/count') {
      if (req.headers.Observe === 0) {
        observers.add(res)
        res.on('finish', () => observers.delete(res))
        res.write(String(count))
      } else {
        res.end(String(count))
      }
    } else {
      res.code = '4.04'
      res.end()
    }
  })
  if (address) server.listen(port, () => console.log('ready'))
  else server.listen(port, group || '127.0.0.1', () => console.log('ready'))
}

function serveMeasured (port) {
  const body = Buffer.alloc(1 << 20)
  const observers = new Set()
  coap.createServer({ type: 'udp4' }, (req, res) => {
    if (req.url === '/mebibyte') {
      res.end(body)
    } else if (req.url === '/state' && req.method === 'PUT') {
      res.code = '2.04'
      res.end()
      for (const observer of observers) observer.write(BENCH)
    } else if (req.url === '/state' && req.headers.Observe === 0) {
      observers.add(res)
      res.on('finish', () => observers.delete(res))
      res.write(BENCH)
    } else {
      res.end(BENCH)
    }
  }).listen(port, '127.0.0.1')
}

function discover (uri) {
  const url = new URL(uri)
  const req = coap.request({
    hostname: url.hostname,
    port: Number(url.port || 5683),
    pathname: url.pathname,
    confirmable: false,
    multicast: true,
    multicastTimeout: 3000
  })
  req.on('response', (res) => console.log(res.code, res.payload.toString()))
  req.on('error', () => {})
  req.end()
  setTimeout(() => process.exit(0), 3500)
}

function askOften (how, count, uri) {
  const url = new URL(uri)
  let left = count
  function get () {
    const confirmable = how !== 'non'
    const req = coap.request({ hostname: url.hostname, port: Number(url.port), pathname: url.pathname, confirmable })
    let done = false
    const goOn = () => {
      if (done) return
      done = true
      left -= 1
      if (left === 0) process.exit(0)
      if (how !== 'open') get()
    }
    // Its socket is closed behind an answer if nothing else is under way by then.
    req.on('response', () => setImmediate(goOn))
    req.on('error', () => { if (confirmable) process.exit(1) })
    req.end()
    if (!confirmable) setTimeout(goOn, PATIENCE)
  }
  for (let number = how === 'open' ? count : 1; number > 0; number--) get()
}

function ask (method, uri, payload) {
  const url = new URL(uri)
  const observe = method === 'observe'
  const req = coap.request({
    hostname: url.hostname,
    port: Number(url.port || 5683),
    pathname: url.pathname,
    query: url.search.slice(1),
    method: observe ? 'GET' : { ipatch: 'iPATCH' }[method] || method.toUpperCase(),
    observe
  })
  // Its client cuts a body into blocks only if it is told to; 6 stands for 1024 bytes.
  if (payload && payload.length > 1024) req.setOption('Block1', Buffer.of(6))
  req.on('response', (res) => {
    if (observe) {
      let seen = 0
      res.on('data', (chunk) => {
        console.log(chunk.toString())
        seen += 1
        if (seen === 3) res.close()
      })
      res.on('end', () => process.exit(0))
      return
    }
    console.log(res.code)
    process.stdout.write(res.payload, () => process.exit(0))
  })
  req.on('error', (error) => {
    console.error(error.message)
    process.exit(1)
  })
  req.end(payload)
}

const [verb, where, payload, , address] = process.argv.slice(2)
if (verb === 'serve') serve(Number(where), payload, address)
else if (verb === 'measured') serveMeasured(Number(where))
else if (verb === 'discover') discover(where)
else if (verb.includes('*')) askOften(...verb.split('*').map((part, at) => at ? Number(part) : part), where)
else ask(verb, where, payload === '-' ? require('fs').readFileSync(0) : payload)
