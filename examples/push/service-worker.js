// What a browser runs when a call rings and no page of the application is open: it shows the call, and declines it
// without opening the page. No bundler, no dependency. The origin of the service is in the URL of this worker:
// navigator.serviceWorker.register('/service-worker.js?service=https://calls.example.com')
const service = new URL(self.location.href).searchParams.get('service') ?? self.location.origin

self.addEventListener('push', (event) => {
  const call = event.data?.json()
  if (call?.type === 'call.wake') event.waitUntil(ring(call))
  if (call?.type === 'call.wake_cancelled') event.waitUntil(stop(call))
})

self.addEventListener('notificationclick', (event) => {
  const { call } = event.notification.data ?? {}
  event.notification.close()
  if (call === undefined) return
  event.waitUntil(event.action === 'decline' ? decline(call) : answer(call))
})

async function ring(call) {
  // The push may be late: the ticket knows whether the call still rings.
  const { over } = await ask(call, 'GET')
  if (over !== undefined) return stop({ ...call, ...over })
  await self.registration.showNotification(`${call.caller.display_name} is calling`, {
    tag: call.call_uuid,
    body: call.call_type === 'video' ? 'Video call' : 'Call',
    requireInteraction: true,
    renotify: true,
    data: { call },
    actions: [
      { action: 'answer', title: 'Answer' },
      { action: 'decline', title: 'Decline' },
    ],
  })
  // The caller hears that it rings.
  await ask(call, 'POST', '/alerting')
}

async function stop(call) {
  if (isMissed(call)) return missed(call)
  // Answered or declined on another device. Browsers want each push to show something, and forgive a few that do not.
  const shown = await self.registration.getNotifications({ tag: call.call_uuid })
  for (const notification of shown) notification.close()
}

/** Nobody answered: the caller gave up, or it rang to its end. A ticket that is over for a day does not say which (null). */
const isMissed = ({ status }) => status === null || status === 'cancelled' || status === 'missed'

/** Of the same tag: it takes the place of what rings. */
const missed = (call) =>
  self.registration.showNotification(`You missed a call of ${call.caller.display_name}`, {
    tag: call.call_uuid,
    silent: true,
  })

async function decline(call) {
  const { isHeard } = await ask(call, 'POST', '/reject')
  // It was not declined: it is to be seen again.
  if (!isHeard) await ring(call)
}

/** The page connects, and is rung: it accepts the call that its address names. */
async function answer(call) {
  const url = `/?answer=${call.call_uuid}`
  const [open] = await self.clients.matchAll({ type: 'window', includeUncontrolled: true })
  if (open === undefined) return self.clients.openWindow(url)
  open.postMessage({ answer: call.call_uuid })
  return open.focus()
}

/** `isHeard`: the service did so, or the call does not ring any more; then `over` says what became of it. */
async function ask(call, method, path = '') {
  try {
    const headers = { Authorization: `Bearer ${call.ring_ticket}` }
    const response = await fetch(`${service}/v1/call/ring${path}`, { method, headers })
    if (response.status === 410) return { isHeard: true, over: { status: (await response.json()).error.status } }
    // The ring is over for long, and with it the ticket. Any other answer says nothing about the call.
    if (response.status === 401) return { isHeard: true, over: { status: null } }
    return { isHeard: response.ok }
  } catch {
    // Without a network nobody knows; the call may still ring.
    return { isHeard: false }
  }
}
