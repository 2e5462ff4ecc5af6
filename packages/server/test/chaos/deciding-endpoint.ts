import type { Random } from '../fuzz/random.ts'
import { answerOf, answersAfter, decisionOn } from './decisions.ts'

/** The service has given up by then. */
const silentMs = 4_000

export interface DecidingEndpoint {
  readonly url: string
  close(): Promise<void>
}

/** The backend of a run that is asked about its invites, and is slow, silent or wrong now and then [HOOK5]. It is real. */
export function openDecidingEndpoint(users: readonly string[], random: Random): DecidingEndpoint {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { call_uuid: callUuid } = ((await request.json()) as { data: { call_uuid: string } }).data
      const decision = decisionOn(callUuid)
      await Bun.sleep(decision === 'nothing' ? silentMs : answersAfter(decision, random))
      return decision === 'nothing'
        ? new Response(null, { status: 503 })
        : new Response(answerOf(decision, callUuid, users))
    },
  })
  return { url: `http://127.0.0.1:${server.port}/invites`, close: () => server.stop(true) }
}
