import type { Identity, Role } from './backend.ts'
import { byId, paintAvatar } from './dom.ts'
import { forgetIdentity, loadIdentity, saveIdentity } from './identity.ts'
import { createRing } from './ring.ts'
import { createSession } from './session.ts'

function enter(identity: Identity, reloaded: boolean): void {
  const relayOnly = new URLSearchParams(location.search).get('relay') === '1'
  const ring = createRing()
  for (const gesture of ['pointerdown', 'keydown']) window.addEventListener(gesture, ring.unlock)
  if (!reloaded) ring.unlock()

  byId('sign-in', HTMLElement).hidden = true
  byId('app', HTMLElement).hidden = false
  byId('me-name', HTMLElement).textContent = identity.name
  byId('me-role', HTMLElement).textContent = identity.role
  paintAvatar(byId('me-avatar', HTMLElement), identity.name)
  byId('relay-only', HTMLElement).hidden = !relayOnly
  // On a narrow screen the call and the people come first.
  const logToggle = byId('log-toggle', HTMLButtonElement)
  const showLog = (open: boolean) => {
    logToggle.setAttribute('aria-expanded', String(open))
    byId('log-body', HTMLElement).hidden = !open
  }
  showLog(matchMedia('(min-width: 720px)').matches)
  logToggle.addEventListener('click', () => showLog(logToggle.getAttribute('aria-expanded') === 'false'))

  const session = createSession({ identity, relayOnly, ring })
  byId('sign-out', HTMLButtonElement).addEventListener('click', () => {
    session.stop()
    forgetIdentity()
    location.reload()
  })
  window.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') session.cancelCalling()
  })
  // For the browser tests alone: they read getStats of the connection that carries the call.
  Object.defineProperty(window, 'ringwireDemo', {
    value: {
      get peerConnection() {
        return session.peerConnection()
      },
    },
  })
  session.start()
}

function offerSignIn(): void {
  const form = byId('sign-in-form', HTMLFormElement)
  byId('sign-in', HTMLElement).hidden = false
  byId('name', HTMLInputElement).focus()
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const fields = new FormData(form)
    const name = String(fields.get('name')).trim()
    const identity = { name, role: fields.get('role') as Role, device_id: crypto.randomUUID() }
    saveIdentity(identity)
    enter(identity, false)
  })
}

const identity = loadIdentity()
if (identity) enter(identity, true)
else offerSignIn()
