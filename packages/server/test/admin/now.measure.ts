/**
 * How long /admin/api/now takes with 10,000 sockets [ADM2].
 *
 *   npx bun packages/server/test/admin/now.measure.ts
 */
import { loadJwtSecrets } from '../../src/auth/jwt-secrets.ts'
import { createTokens } from '../../src/auth/tokens.ts'
import { finish } from '../scenarios/calls/composition.ts'
import { adminUrlOf, startObserved } from './observed.ts'

const sockets = 10_000
/** No participant may have more than 20, and a machine opens 100 at once. */
const [ofParticipant, atOnce] = [10, 100]
const token = 'a-token-that-only-tests-know'

const service = await startObserved({ RINGWIRE_ADMIN_TOKEN: token })
const tokens = createTokens({
  secrets: loadJwtSecrets({ jwtSecrets: null, dataDir: service.dataDir }),
  ttlS: 3_600,
  now: Date.now,
})
const url = `${service.url.replace('http', 'ws')}/v1/ws`
const open: WebSocket[] = []

async function connect(n: number): Promise<void> {
  const participant = { product: 'shop', role: 'customer', userId: `user-${Math.floor(n / ofParticipant)}` }
  const context = { displayName: 'x', contextType: 'order', contextId: '1', allowedPeerRoles: ['agent'] }
  const socket = new WebSocket(url, ['jwt', tokens.issue({ participant, ...context }).token])
  await new Promise<void>((resolve, reject) => {
    socket.onmessage = () => resolve()
    socket.onclose = ({ code }) => reject(new Error(`a socket was closed with ${code}`))
  })
  open.push(socket)
}

for (let n = 0; n < sockets; n += atOnce) await Promise.all(Array.from({ length: atOnce }, (_, i) => connect(n + i)))
const admin = await adminUrlOf(service)
const times: number[] = []
for (let i = 0; i < 300; i++) {
  const begin = performance.now()
  const answer = await fetch(`${admin}/admin/api/now`, { headers: { Authorization: `Bearer ${token}` } })
  const { connections } = await answer.json()
  times.push(performance.now() - begin)
  if (connections !== sockets) throw new Error(`${connections} sockets`)
}
times.sort((a, b) => a - b)
const at = (share: number) => `${times[Math.floor((times.length - 1) * share)]?.toFixed(2)} ms`
console.log(`${sockets} sockets: median ${at(0.5)}, 95 of 100 ${at(0.95)}, longest ${at(1)}`)
await finish(service)
process.exit(0)
