/** Whether a call wakes this browser when no page of the call centre is open. */
import { forgetDevice, registerDevice } from '@ringwire/client/push'
import { useEffect, useState } from 'react'
import { type Start, sessionToken } from './backend.ts'

export interface Waking {
  readonly state: 'on' | 'off' | 'asking' | 'denied' | 'impossible' | 'failed'
  /** After a click: it asks for what a call needs then. */
  begin(): Promise<void>
  /** Somebody signs out: this browser is not theirs any more. */
  stop(): Promise<void>
}

const isPossible = () => 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window

function stateAtStart(): Waking['state'] {
  if (!isPossible()) return 'impossible'
  return Notification.permission === 'denied' ? 'denied' : 'off'
}

/** Whose calls wake this browser. */
const wish = 'wake'

/** Subscribes this browser and registers it, or does it again. */
async function register({ serviceUrl: url, vapidPublicKey }: Start): Promise<Waking['state']> {
  const script = `/service-worker.js?service=${encodeURIComponent(url)}`
  const registration = await navigator.serviceWorker.register(script, { type: 'module' })
  await navigator.serviceWorker.ready
  const isOn = await registerDevice({ url, token: await sessionToken(), registration, vapidPublicKey })
  return isOn ? 'on' : 'impossible'
}

const stateOfFailure = () => (Notification.permission === 'denied' ? 'denied' : 'failed')

export function useWaking(start: Start): Waking {
  const [state, setState] = useState(stateAtStart)

  // At each start, for who asked for it: addresses change.
  useEffect(() => {
    if (!isPossible() || localStorage.getItem(wish) !== start.user?.user_id) return
    register(start).then(setState, () => setState(stateOfFailure()))
  }, [start])

  return {
    state,
    async begin() {
      setState('asking')
      try {
        if ((await Notification.requestPermission()) !== 'granted') return setState('denied')
        setState(await register(start))
        localStorage.setItem(wish, start.user?.user_id ?? '')
        // Now, and not while somebody waits: an answer from a notification is to need no more questions.
        const stream = await navigator.mediaDevices.getUserMedia({ audio: true }).catch(() => undefined)
        for (const track of stream?.getTracks() ?? []) track.stop()
      } catch {
        setState(stateOfFailure())
      }
    },
    async stop() {
      if (state !== 'on') return
      localStorage.removeItem(wish)
      await forgetDevice({ url: start.serviceUrl, token: await sessionToken() }).catch(() => undefined)
    },
  }
}
