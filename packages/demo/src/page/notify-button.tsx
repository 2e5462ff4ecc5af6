import { useState } from 'react'
import { Icon } from './icons.tsx'

/** Asks whether calls may be notified; it is there until the person has said yes or no. */
export function NotifyButton() {
  const [permission, setPermission] = useState(() => ('Notification' in window ? Notification.permission : 'denied'))
  if (permission !== 'default') return null
  const ask = () => void Notification.requestPermission().then(setPermission)
  return (
    <button
      type="button"
      className="icon-button"
      aria-label="Notify me of calls"
      title="Notify me of calls while this tab is hidden"
      data-testid="notify"
      onClick={ask}
    >
      <Icon name="bell" />
    </button>
  )
}
