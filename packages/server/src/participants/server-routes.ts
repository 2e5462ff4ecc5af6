/** Participants for application backends: /v1/server/participants/{role}/{user_id} and what is below it [SRV2]. */
import {
  type Disconnected,
  DisconnectRequest,
  type ParticipantErased,
  type ParticipantView,
} from '@ringwire/protocol/backend'
import { createValidator } from '@ringwire/protocol/validate'
import type { Participant } from '../call/call.ts'
import { isId } from '../history/seen-calls.ts'
import { failure, json, jsonStream, retryAfter } from '../http/replies.ts'
import type { Journal } from '../observability/journal.ts'
import type { Clock } from '../ports/clock.ts'
import { type Answer, createProductEndpoint, type ProductEndpointDeps } from '../products/endpoint.ts'
import type { ExportOf } from './export.ts'
import { type Participants, readUntil } from './participants.ts'

export interface ServerParticipantsDeps extends ProductEndpointDeps {
  readonly participants: Participants
  readonly exportOf: ExportOf
  readonly journal: Pick<Journal, 'failed'>
  readonly clock: Pick<Clock, 'now'>
}

const idRule = 'There is no such participant: role and user_id are 1 to 255 bytes of UTF-8 each, without NUL.'
/** A repeated request joins the erasure, so this may be short. In ms. */
const againMs = 1_000
const goesOn = 'The erasure goes on. Ask again to hear when it is done, and how much was erased in all.'

export function createServerParticipantsEndpoints(deps: ServerParticipantsDeps) {
  const { participants, exportOf, journal, clock } = deps
  const validate = createValidator(DisconnectRequest)

  /** Of the participant that the path names, or the query where a path could not [ID3]. */
  const about = (answer: (participant: Participant, ...asked: Parameters<Answer>) => Promise<Response>) =>
    createProductEndpoint(deps, (asked, begun) => {
      const { product, params, query } = asked
      const role = params.role ?? query.get('role') ?? ''
      const userId = params.user_id ?? query.get('user_id') ?? ''
      for (const [name, value] of Object.entries({ role, user_id: userId })) {
        if (value.trim() === '') return failure('INVALID_QUERY', { message: `${name} is required.` })
        // Nobody can have such a name.
        if (!isId(value)) return failure('NOT_FOUND', { message: idRule })
      }
      return answer({ product, role, userId }, asked, begun)
    })

  /**
   * Forgets the counts when the runtime has written the answer. A client whose connection was lost before asks again, and gets
   * the same counts. If they cannot be forgotten, the erasure is done nevertheless.
   */
  function heardSoon(participant: Participant, signal: AbortSignal): void {
    setImmediate(() => {
      if (signal.aborted) return
      participants
        .erasureHeard(participant)
        .catch((error) => journal.failed(error, 'the counts of an erasure could not be forgotten'))
    })
  }

  const answers = {
    show: about(async (participant) => {
      const shown = await participants.show(participant)
      return json(200, { success: true, ...shown } satisfies ParticipantView)
    }),
    erase: about(async (participant, { signal }, begun) => {
      const isNew = !participants.isErasing(participant)
      const erased = await participants.erase(participant)
      if (erased === undefined) {
        // A client asks again until it is done: one entry is enough.
        if (isNew) await begun()
        return failure('SERVICE_UNAVAILABLE', { message: goesOn, headers: retryAfter(againMs) })
      }
      heardSoon(participant, signal)
      return json(200, { success: true, ...erased } satisfies ParticipantErased)
    }),
    export: about((participant) =>
      jsonStream(exportOf(participant), (error) => journal.failed(error, 'an export was cut')),
    ),
    disconnect: about(async (participant, { body }) => {
      const checked = validate(body)
      if (!checked.ok) return failure('INVALID_REQUEST_BODY', { message: `${checked.field} ${checked.message}.` })
      const until = readUntil(checked.value.until ?? undefined, clock.now())
      if (typeof until === 'string') return failure('INVALID_REQUEST_BODY', { message: `until ${until}` })
      const before = await participants.disconnect(participant, until)
      return json(200, { success: true, tokens_from: new Date(before).toISOString() } satisfies Disconnected)
    }),
  }
  return {
    serverParticipant: answers.show,
    serverParticipantByQuery: answers.show,
    serverEraseParticipant: answers.erase,
    serverEraseParticipantByQuery: answers.erase,
    serverExportParticipant: answers.export,
    serverExportParticipantByQuery: answers.export,
    serverDisconnect: answers.disconnect,
    serverDisconnectByQuery: answers.disconnect,
  }
}
