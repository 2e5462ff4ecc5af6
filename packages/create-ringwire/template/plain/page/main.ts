/** The page: signing in, the people whom one may call, and one call with its media. */
import { type Call, createCallClient } from '@ringwire/client'
import { type CallMedia, createCallMedia } from '@ringwire/client/media'

interface Person {
  user_id: string
  role: string
  display_name: string
}
/** The backend's answer: the signed-in person, or the people who could sign in. */
interface Start {
  me?: Person
  peers?: Person[]
  names?: { name: string; display_name: string }[]
}

const find = <E extends HTMLElement>(id: string) => document.getElementById(id) as E
const post = (path: string) => fetch(path, { method: 'POST' })
const show = (id: string, isShown: boolean) => {
  find(id).hidden = !isShown
}
function buttonOf(text: string, data: DOMStringMap, onClick: () => void): HTMLButtonElement {
  const button = document.createElement('button')
  Object.assign(button, { type: 'button', textContent: text, onclick: onClick })
  Object.assign(button.dataset, data)
  return button
}

const client = createCallClient({
  getToken: () => post('/call-token'),
  // A page that is loaded again goes on with its call.
  storage: sessionStorage,
})
/** The call that the page shows, and its media from when it is placed or answered. */
let current: Call | undefined
let media: CallMedia | undefined

function take(call: Call): void {
  current = call
  call.on('state', draw)
  call.on('peer', draw)
  draw()
}

function join(call: Call): void {
  media = createCallMedia(call, { client })
  media.attach(find<HTMLVideoElement>('remote'))
  media.on('state', draw)
  media.start().catch(({ code }) => {
    if (code !== 'CLOSED') find('status').textContent = `No camera or microphone: ${code}`
  })
  draw()
}

/** Puts what is known into the page. */
function draw(): void {
  const call = current?.state.name === 'over' ? undefined : current
  show('stage', call !== undefined)
  show('idle', call === undefined)
  if (current?.state.name === 'over') find('last').textContent = `The call is over: ${current.state.reason}`
  find('connection').textContent = client.state.name
  find('connection').dataset.state = client.state.name
  for (const button of document.querySelectorAll<HTMLButtonElement>('[data-call]')) {
    button.disabled = client.state.name !== 'online'
  }
  if (call === undefined) return
  const isRinging = call.state.name === 'ringing'
  const name = call.peer.displayName ?? call.peer.userId
  const ringing = call.direction === 'incoming' ? `${name} is calling` : `Calling ${name} …`
  find('status').textContent = isRinging ? ringing : `${name}: ${call.state.name}`
  show('answer', isRinging && call.direction === 'incoming')
  show('mute', media !== undefined)
  find('hang-up').textContent = isRinging && call.direction === 'incoming' ? 'Decline' : 'Hang up'
  const own = find<HTMLVideoElement>('own')
  const local = media?.state.local ?? null
  if (own.srcObject !== local) own.srcObject = local
  const isMuted = media?.state.muted.audio === true
  find('mute').setAttribute('aria-pressed', `${isMuted}`)
}

/** One call at a time: another one that comes meanwhile is declined. */
client.on('incoming', (call) => {
  if (current !== undefined && current.state.name !== 'over') return void call.end()
  media = undefined
  take(call)
  void call.alerting()
})
client.on('restored', (call) => {
  take(call)
  join(call)
})
client.on('state', draw)

find('answer').onclick = () => {
  if (current === undefined) return
  join(current)
  void current.accept()
}
find('mute').onclick = () => void media?.setMuted('audio', !media.state.muted.audio)
find('hang-up').onclick = () => void current?.end()
find('sign-out').onclick = async () => {
  client.close()
  await post('/sign-out')
  await enter()
}

function listPeople(peers: readonly Person[]): void {
  const rows = peers.map(({ user_id, role, display_name }) => {
    const row = document.createElement('div')
    const name = document.createElement('strong')
    name.textContent = display_name
    row.className = 'person'
    const place = () => {
      const call = client.call({ userId: user_id, role, displayName: display_name, callType: 'video' })
      take(call)
      join(call)
    }
    row.append(name, buttonOf('Video call', { call: 'video' }, place))
    return row
  })
  find('people').replaceChildren(...rows)
}

async function enter(): Promise<void> {
  const { me, peers = [], names = [] }: Start = await (await fetch('/me')).json()
  for (const id of ['header', 'main']) show(id, me !== undefined)
  show('sign-in', me === undefined)
  const signIn = (name: string) => void post(`/sign-in?name=${name}`).then(enter)
  find('names').replaceChildren(
    ...names.map(({ name, display_name }) => buttonOf(display_name, { name }, () => signIn(name))),
  )
  if (me === undefined) return
  find('me').textContent = me.display_name
  listPeople(peers)
  draw()
  client.connect()
}

void enter()
