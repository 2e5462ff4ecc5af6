// What the browser runs when a call rings and no page is open: it shows the call, and declines it without opening a page.
import { answerTicket } from '@ringwire/client/push'

const service = new URL(self.location.href).searchParams.get('service')
const ticketOf = (call) => answerTicket(call.ring_ticket, { url: service })

// A new version of it is not to wait until every page is closed.
self.addEventListener('install', () => self.skipWaiting())

self.addEventListener('push', (event) => {
  const call = event.data?.json()
  if (call?.type === 'call.wake') event.waitUntil(ring(call))
  if (call?.type === 'call.wake_cancelled') event.waitUntil(stop(call))
})

self.addEventListener('notificationclick', (event) => {
  const { call } = event.notification.data
  event.notification.close()
  event.waitUntil(event.action === 'decline' ? decline(call) : open(call?.call_uuid))
})

async function ring(call) {
  // The push may be late: the ticket knows whether the call still rings. Without a network nobody knows.
  const look = await ticketOf(call)
    .look()
    .catch(() => ({ ringing: true }))
  if (!look.ringing) return stop({ ...call, status: look.status })
  const about = look.contextId === undefined ? 'A customer' : `Order ${look.contextId}`
  await self.registration.showNotification(`${call.caller.display_name} is calling`, {
    tag: call.call_uuid,
    body: about,
    icon: '/icon.svg',
    requireInteraction: true,
    renotify: true,
    data: { call },
    actions: [
      { action: 'answer', title: 'Answer' },
      { action: 'decline', title: 'Decline' },
    ],
  })
  // The customer hears that it rings.
  await ticketOf(call)
    .alerting()
    .catch(() => undefined)
}

async function stop(call) {
  if (isMissed(call)) return missed(call)
  // Answered or declined on another device.
  const shown = await self.registration.getNotifications({ tag: call.call_uuid })
  for (const notification of shown) notification.close()
}

/** Nobody answered: the customer gave up, or it rang to its end. A ticket that is over for a day does not say which (null). */
const isMissed = ({ status }) => status === null || status === 'cancelled' || status === 'missed'

/** Of the same tag: it takes the place of what rings. */
function missed(call) {
  return self.registration.showNotification(`You missed a call of ${call.caller.display_name}`, {
    ...{ tag: call.call_uuid, icon: '/icon.svg', silent: true, data: {} },
  })
}

async function decline(call) {
  try {
    await ticketOf(call).reject()
  } catch {
    // It was not declined: it is to be seen again.
    await ring(call)
  }
}

/** The page connects, is rung, and accepts the call that its address names. */
async function open(callUuid) {
  const [page] = await self.clients.matchAll({ type: 'window', includeUncontrolled: true })
  if (page === undefined) return self.clients.openWindow(callUuid === undefined ? '/' : `/?answer=${callUuid}`)
  page.postMessage({ answer: callUuid })
  return page.focus()
}
