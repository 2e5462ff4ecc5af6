// What your application does about calls.

/** User IDs that may call nobody. In place of your own rule: blocked users, opening hours, agents on duty. */
const blocked = new Set(['mallory'])

/** Asked about each invite, before anything rings. The answer may also be a `redirect`, to another callee. */
export function decide({ caller }) {
  return blocked.has(caller.user_id) ? { decision: 'refuse', reason: 'blocked' } : { decision: 'allow' }
}

/** Told of each step of each call, after its webhook was verified. Here it is printed; yours goes into your database. */
export function onWebhook({ type, data }) {
  const { call_uuid, caller, callee, end_reason } = data
  if (call_uuid === undefined) return console.log(type)
  console.log([type, call_uuid, `${caller.user_id} → ${callee.user_id}`, end_reason].filter(Boolean).join('  '))
}
