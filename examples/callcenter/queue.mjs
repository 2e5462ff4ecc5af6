// Customers who reached nobody wait here, in the order in which they came. The next agent who is free calls them. It is in
// memory: yours is a table of your database.

/** How long a page may be away, in ms: it is loaded again, or its network changes. */
const graceMs = 20_000
/** How long an agent has to call the customer that `next` gave, in ms. */
const claimMs = 10_000

const reachedNobody = ['missed', 'busy', 'rejected']
const talks = ['accepted', 'connected']

export function createQueue() {
  /** By user_id. */
  const waiting = new Map()

  function join(userId, now = Date.now()) {
    if (!waiting.has(userId)) waiting.set(userId, { userId, since: now, seenAt: now, claimedUntil: 0 })
  }

  return {
    join,
    /** A call as a webhook tells of it. */
    heard({ status, caller, callee, by, transferred_from }, now = Date.now()) {
      const customer = [caller, callee].find(({ role }) => role === 'customer')
      // Colleagues among themselves, or a transfer: its customer still talks to the agent who transfers.
      if (customer === undefined || (transferred_from && status !== 'accepted')) return
      if (talks.includes(status)) waiting.delete(customer.user_id)
      else if (!reachedNobody.includes(status)) return
      // It was the agent who called: the customer did not answer.
      else if (customer === callee) waiting.delete(customer.user_id)
      // If nobody did it, the backend refused the call: outside of opening hours nobody waits.
      else if (status !== 'rejected' || by !== null) join(customer.user_id, now)
    },
    /** These have their page open. Those who closed it do not wait any more. */
    seen(userIds, now = Date.now()) {
      for (const entry of [...waiting.values()]) {
        if (userIds.has(entry.userId)) entry.seenAt = now
        else if (now - entry.seenAt > graceMs) waiting.delete(entry.userId)
      }
    },
    leave: (userId) => waiting.delete(userId),
    list: () => [...waiting.values()],
    /** The first one who is in no call, for one agent only; undefined where nobody waits. */
    next(isInCall, now = Date.now()) {
      const entry = [...waiting.values()].find((it) => it.claimedUntil <= now && !isInCall(it.userId))
      if (entry !== undefined) entry.claimedUntil = now + claimMs
      return entry?.userId
    },
  }
}
