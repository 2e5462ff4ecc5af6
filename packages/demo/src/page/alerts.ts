import { useCallUi } from '@ringwire/ui'
import { useEffect } from 'react'

/** Tells a person who does not look at the page of a call, in addition to its sound: by its title, and a notification. */
export function useAlerts(): void {
  const { phase, call } = useCallUi()
  const name = call?.peer.displayName ?? call?.peer.userId ?? ''
  const kind = call?.callType === 'video' ? 'Video' : 'Audio'
  useEffect(() => {
    if (phase !== 'incoming') return
    const title = document.title
    document.title = `☎ ${name} calls`
    return () => {
      document.title = title
    }
  }, [phase, name])
  useEffect(() => {
    if (phase !== 'incoming') return
    return notifyWhileHidden(`${name} calls`, `${kind} call. Click to answer it.`)
  }, [phase, name, kind])
}

/** Notifies once the page is hidden; the returned function takes the notification away. */
function notifyWhileHidden(title: string, body: string): () => void {
  let shown: Notification | undefined
  const look = () => {
    if (!document.hidden || shown || !mayNotify()) return
    try {
      shown = new Notification(title, { body, icon: 'icon.svg', tag: 'call', requireInteraction: true })
    } catch {
      // A phone's browser leaves notifications to service workers.
      return
    }
    shown.onclick = () => {
      window.focus()
      shown?.close()
    }
  }
  look()
  document.addEventListener('visibilitychange', look)
  return () => {
    document.removeEventListener('visibilitychange', look)
    shown?.close()
  }
}

function mayNotify(): boolean {
  return 'Notification' in window && Notification.permission === 'granted'
}
