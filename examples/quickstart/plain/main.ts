/** A phone without a framework: signing in, a client, and the media of one call. */
import { type Call, createCallClient } from '@ringwire/client'
import { createCallMedia } from '@ringwire/client/media'

const find = <E extends HTMLElement>(id: string) => document.getElementById(id) as E
const say = (text: string) => {
  find('status').textContent = text
}

const client = createCallClient({
  getToken: () => fetch('/call-token', { method: 'POST' }),
  // A page that is loaded again goes on with its call.
  storage: sessionStorage,
})
/** Whom each of the two calls. */
const peers = { ann: { userId: 'ben', role: 'agent' }, ben: { userId: 'ann', role: 'customer' } }
let peer = peers.ann

function enter(name: 'ann' | 'ben'): void {
  peer = peers[name]
  sessionStorage.setItem('name', name)
  client.connect()
}

for (const name of ['ann', 'ben'] as const) {
  find(name).onclick = async () => {
    const { ok } = await fetch(`/sign-in?name=${name}`, { method: 'POST' })
    if (ok) enter(name)
  }
}

/** Says how the call goes. */
function show(call: Call): void {
  call.on('state', (state) => say(state.name === 'over' ? `Over: ${state.reason}` : state.name))
}

function join(call: Call): void {
  const media = createCallMedia(call, { client })
  media.attach(find<HTMLVideoElement>('remote'))
  find<HTMLVideoElement>('own').srcObject = media.state.local
  media.start().catch(({ code }) => {
    if (code !== 'CLOSED') say(`No camera or microphone: ${code}`)
  })
}

client.on('state', ({ name }) => {
  if (client.calls.length === 0) say(name)
})
client.on('incoming', (call) => {
  show(call)
  say(`${call.peer.displayName} is calling`)
  void call.alerting()
})
client.on('restored', (call) => {
  show(call)
  join(call)
})

find('call').onclick = () => {
  const call = client.call({ ...peer, callType: 'video' })
  show(call)
  join(call)
}
find('answer').onclick = () => {
  const call = client.calls.find(({ direction, state }) => direction === 'incoming' && state.name === 'ringing')
  if (!call) return
  join(call)
  void call.accept()
}
find('hang-up').onclick = () => {
  for (const call of client.calls) void call.end()
}

const before = sessionStorage.getItem('name')
if (before === 'ann' || before === 'ben') enter(before)
