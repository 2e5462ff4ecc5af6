// APNs as far as it can be seen from outside, on HTTP/2, with TLS where it is given a certificate. It runs in Node: another
// HTTP/2 than that of the service. Requests are reported as JSON lines; lines of stdin say how the next requests are
// answered.
import { createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureServer, createServer } from 'node:http2'
import { createInterface } from 'node:readline'

const publicKey = createPublicKey(process.env.APNS_PUBLIC_KEY)
const answers = []
let seen = 0
const tell = (what) => process.stdout.write(`${JSON.stringify(what)}\n`)

const { APNS_TLS_CERT: cert, APNS_TLS_KEY: key } = process.env
const server =
  cert === undefined ? createServer() : createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) })
server.on('session', (session) => {
  session.id = ++seen
  session.on('error', () => {})
})
server.on('stream', (stream, headers) => {
  let body = ''
  stream.setEncoding('utf8')
  stream.on('data', (chunk) => {
    body += chunk
  })
  stream.on('error', () => {})
  stream.on('aborted', () => tell({ reset: stream.rstCode }))
  stream.on('end', () => {
    const { session } = stream
    const planned = answers.shift()
    tell({ over: session?.id, headers, body: JSON.parse(body), planned })
    if (planned === 'silence') return
    if (planned === 'informational') {
      for (let n = 0; n < 20; n++) stream.additionalHeaders({ ':status': 103 })
      respond(stream, 200)
      return
    }
    if (planned === 'endless') {
      stream.respond({ ':status': 400 })
      const more = () => {
        while (!stream.destroyed && stream.write('x'.repeat(16_384)));
      }
      stream.on('drain', more)
      more()
      return
    }
    if (planned === 'goaway') {
      respond(stream, 200)
      session.goaway(0)
      return
    }
    if (planned === 'cut') {
      session.destroy()
      return
    }
    if (planned !== undefined) {
      respond(stream, planned.status, planned.reason, planned.headers)
      return
    }
    const problem = tokenProblem(headers.authorization)
    if (problem !== undefined) respond(stream, 403, problem)
    else {
      const token = headers[':path'].slice('/3/device/'.length)
      if (/^(dead)+$/.test(token)) respond(stream, 410, 'Unregistered')
      else if (/^0+$/.test(token)) respond(stream, 400, 'BadDeviceToken')
      else respond(stream, 200)
    }
  })
})

function respond(stream, status, reason, more = {}) {
  if (stream.destroyed) return
  stream.respond({ ':status': status, 'apns-id': 'x', ...more })
  stream.end(reason === undefined ? '' : JSON.stringify({ reason }))
}

function tokenProblem(authorization = '') {
  const [, head, claims, signature] = /^bearer ([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(authorization) ?? []
  if (head === undefined) return 'MissingProviderToken'
  const read = (part) => JSON.parse(Buffer.from(part, 'base64url').toString())
  const { alg, kid } = read(head)
  const { iss, iat } = read(claims)
  const key = { key: publicKey, dsaEncoding: 'ieee-p1363' }
  const isGood = verify('sha256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'))
  if (!isGood || alg !== 'ES256' || kid !== 'KEY1234567' || iss !== 'TEAM123456') return 'InvalidProviderToken'
  return Math.abs(Date.now() / 1000 - iat) > 3600 ? 'ExpiredProviderToken' : undefined
}

createInterface({ input: process.stdin }).on('line', (line) => {
  answers.push(...JSON.parse(line))
  tell({ planned: true })
})
process.stdin.on('end', () => process.exit(0))
server.listen(0, '127.0.0.1', () => tell({ port: server.address().port }))
