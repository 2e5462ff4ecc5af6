// Two clients of the bundle on Node: one calls, the other answers. argv: the bundle; stdin: {caller, callee} tokens.
import { readFileSync } from 'node:fs'

const { createCallClient } = await import(process.argv[2])
const tokens = JSON.parse(readFileSync(0, 'utf8'))

function start(token) {
  const client = createCallClient({ getToken: async () => token })
  client.connect()
  return new Promise((resolve) => client.on('state', ({ name }) => name === 'online' && resolve(client)))
}

const [caller, callee] = await Promise.all([start(tokens.caller), start(tokens.callee)])
const heard = new Promise((resolve) => {
  callee.on('incoming', async (call) => {
    call.on('offer', ({ sdp }) => resolve({ call, sdp }))
    await call.accept()
  })
})
const out = caller.call({ userId: tokens.callee.user.user_id, role: tokens.callee.user.role })
await new Promise((resolve) => out.on('state', ({ name }) => name === 'accepted' && resolve()))
await out.sendOffer({ type: 'offer', sdp: 'v=0' })
const { call, sdp } = await heard
const over = new Promise((resolve) => out.on('state', resolve))
await call.end()
const { name, reason } = await over
caller.close()
callee.close()
console.log(JSON.stringify({ version: process.version, sdp, name, reason }))
