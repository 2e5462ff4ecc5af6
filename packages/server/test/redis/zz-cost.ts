import { Redis } from 'ioredis'
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { Postgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { Service } from '../support/service.ts'
import { someone, candidate, invite } from '../support/flows.ts'

const across = process.argv[2] === 'across'
const [pg, redis] = await Promise.all([Postgres.start(), startRedis([])])
const env = { DATABASE_URL: await pg.database(), REDIS_URL: redis.url, RINGWIRE_JWT_SECRETS: `test:${'A'.repeat(43)}`, RINGWIRE_WS_RATE: 'off', RINGWIRE_DRAIN_MS: '0' }
const one = await new Service({ ...env, RINGWIRE_NODE_ID: 'one' }).start()
const two = await new Service({ ...env, RINGWIRE_NODE_ID: 'two' }).start()
const client = new Redis(redis.url)
const sdp = 'x'.repeat(3000)
const caller = await one.connect({ user_id: someone('a'), role: 'customer' })
const calleeId = someone('b')
const callee = await (across ? two : one).connect({ user_id: calleeId, role: 'agent' })
async function call() {
  const id = await invite(caller, calleeId, { callee_role: 'agent' })
  await callee.next('call.ringing', (m) => m.data.call_uuid === id)
  callee.send('call.accept', { call_uuid: id })
  await caller.next('call.accepted', (m) => m.data.call_uuid === id)
  caller.send('webrtc.offer', { call_uuid: id, sdp: { type: 'offer', sdp } })
  await callee.next('webrtc.offer', (m) => m.data.call_uuid === id)
  callee.send('webrtc.answer', { call_uuid: id, sdp: { type: 'answer', sdp } })
  await caller.next('webrtc.answer', (m) => m.data.call_uuid === id)
  for (let i = 0; i < 5; i++) {
    caller.send('webrtc.ice_candidate', candidate(id, i))
    callee.send('webrtc.ice_candidate', candidate(id, i))
  }
  await callee.next('webrtc.ice_candidate', (m) => m.data.call_uuid === id && m.data.candidate.candidate.endsWith(':4'))
  await caller.next('webrtc.ice_candidate', (m) => m.data.call_uuid === id && m.data.candidate.candidate.endsWith(':4'))
  caller.send('call.connected', { call_uuid: id })
  await caller.settle()
  callee.send('call.connected', { call_uuid: id })
  await callee.settle()
  caller.send('call.end', { call_uuid: id })
  await callee.next('call.ended', (m) => m.data.call_uuid === id)
  await caller.settle()
}
for (let i = 0; i < 50; i++) await call()
await client.config('SET', 'slowlog-log-slower-than', '0')
await client.config('SET', 'slowlog-max-len', '100000')
await client.slowlog('RESET')
await client.config('RESETSTAT')
const N = 200
for (let i = 0; i < N; i++) await call()
const log = (await client.slowlog('GET', 100000)) as any[]
const dir = new URL('../../src/adapters/redis/lua/', import.meta.url).pathname
const heads = ['log', 'session'].map((f) => readFileSync(`${dir}${f}.lua`, 'utf8'))
const names = new Map<string, string>()
const loaded = Object.fromEntries(readdirSync(dir).map((f) => [f, readFileSync(dir + f, 'utf8')]))
for (const [f, t] of Object.entries(loaded)) for (const pre of ['', heads[0] + '\n' + heads[1] + '\n', heads.join(''), heads[0]! + '\n', heads[0]!]) names.set(createHash('sha1').update(pre + t).digest('hex'), f)
const sums = new Map<string, { n: number; us: number }>()
for (const [, , us, args] of log) {
  let name = String(args[0]).toLowerCase()
  if (name === 'evalsha') {
    name = names.get(args[1]) ?? args[1].slice(0, 6)
    if (name === 'touch.lua') name += ' ' + args[10]
    if (name === 'append.lua' || name === 'keep.lua') name += ' ' + args[9]
  }
  const s = sums.get(name) ?? { n: 0, us: 0 }
  s.n++; s.us += us; sums.set(name, s)
}
let total = 0
for (const [name, { n, us }] of [...sums].sort((a, b) => b[1].us - a[1].us)) { total += us; console.log(name.padEnd(24), (n / N).toFixed(2).padStart(7), (us / n).toFixed(1).padStart(7), 'us', (us / N).toFixed(1).padStart(8), 'us/call') }
console.log('total us/call', (total / N).toFixed(1))
const stats = await client.info('commandstats')
console.log(stats.split('\n').filter((l) => l.startsWith('cmdstat')).map((l) => l.match(/cmdstat_(\S+):calls=(\d+),usec=(\d+)/)!).sort((a, b) => Number(b[3]) - Number(a[3])).slice(0, 22).map((m) => `${m[1]} ${(Number(m[2]) / N).toFixed(1)} calls ${(Number(m[3]) / N).toFixed(1)} us/call`).join('\n'))
const q = await pg.database
client.disconnect()
await Promise.all([one.dispose(), two.dispose()])
await pg.dispose(); await redis.stop()
process.exit(0)
