// The backend's own book of calls, written from webhooks: a line for each step, so that it is there after a restart. Yours
// is a table of your database.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** The webhooks that tell of a call's steps; those of waking phones are for backends that send pushes themselves. */
export const steps = ['ringing', 'accepted', 'connected', 'ended', 'rejected', 'cancelled', 'missed', 'busy'].map(
  (step) => `call.${step}`,
)

const isLive = ({ status }) => ['ringing', 'accepted', 'connected'].includes(status)

export function openBook(file) {
  const calls = new Map()

  /** A webhook may come more than once: only a newer version of the call counts. */
  function take(call) {
    const known = calls.get(call.call_uuid)
    if (known !== undefined && known.version >= call.version) return false
    calls.set(call.call_uuid, call)
    return true
  }

  if (existsSync(file)) {
    for (const line of readFileSync(file, 'utf8').split('\n')) if (line !== '') take(JSON.parse(line))
  }
  const newestFirst = () => [...calls.values()].sort((a, b) => b.started_at.localeCompare(a.started_at))
  return {
    /** The call as it is now, of a webhook or of the API. False: it is known already. */
    write(call) {
      const isNew = take(call)
      if (isNew) appendFileSync(file, `${JSON.stringify(call)}\n`)
      return isNew
    },
    live: () => newestFirst().filter(isLive).reverse(),
    isInCall: ({ role, user_id }) =>
      [...calls.values()].some(
        (call) => isLive(call) && [call.caller, call.callee].some((it) => it.role === role && it.user_id === user_id),
      ),
    over: () => newestFirst().filter((call) => !isLive(call)),
  }
}
