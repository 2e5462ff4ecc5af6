/** What a scenario of a service has: people who connect, and a judge. */
import type { TokenResponse } from '@ringwire/protocol/rest'
import type { Access, Answer, Who } from '../access.ts'
import type { Heard } from '../heard.ts'
import { Party } from '../party.ts'
import type { RuleId } from '../rules.ts'
import type { Transcript } from '../transcript.ts'
import type { Judge } from '../verdicts.ts'
import { createWatch } from '../watch.ts'

export interface Person {
  readonly name: string
  readonly who: Who
}

/** Where an extended session is to go on. */
export interface ResumePoint {
  readonly session_id: string
  readonly epoch: string
  readonly seq: number
  readonly n: number
}

export interface EnterOptions {
  readonly isExtended?: boolean
  readonly device?: string
  readonly resume?: ResumePoint
  /** Capabilities of an extended session. */
  readonly can?: readonly string[]
  readonly answersPings?: boolean
  /** As it is shown in the frames. */
  readonly as?: string
  readonly by?: 'subprotocol' | 'header'
}

/** A client of the kit that has had its auth.ok. */
export interface Entered {
  readonly party: Party
  readonly hello: Heard
}

export interface Stage extends Judge {
  readonly access: Access
  readonly patienceMs: number
  /** Somebody whom no other scenario knows. The caller's role may call the callee's, and the other way round. */
  person(name: string, side: 'caller' | 'callee'): Person
  /** `headers` and `path` as they go out. */
  open(name: string, wire: WireWish): Party
  enter(person: Person, options?: EnterOptions): Promise<Entered>
  issue(person: Person, device?: string): Promise<TokenResponse>
  history(token: string, query?: string): Promise<Answer>
  note(text: string): void
}

export interface WireWish {
  readonly wsUrl: string
  readonly headers: readonly string[]
  readonly isExtended?: boolean
  readonly seq?: number
  readonly answersPings?: boolean
  readonly key?: string
  readonly version?: string
}

export interface Scenario {
  readonly name: string
  /** The rules that it can check; rules that are checked on each message are not listed. */
  readonly rules: readonly RuleId[]
  readonly needs?: 'extended' | 'time'
  run(stage: Stage): Promise<void>
}

export interface StageOptions {
  readonly access: Access
  readonly judge: Judge
  readonly transcript: Transcript
  readonly patienceMs: number
  readonly roles: { readonly caller: string; readonly callee: string }
}

/** Answers also how to end whatever is still open. */
export function createStage(options: StageOptions): { stage: Stage; leave(): void } {
  const { access, judge, transcript, patienceMs, roles } = options
  const open: Party[] = []
  const mark = crypto.randomUUID().slice(0, 8)

  const openParty: Stage['open'] = (name, wish) => {
    const watch = createWatch(judge, wish.isExtended === true, wish.seq)
    const party = new Party({ name, judge, transcript, watch, patienceMs, ...wish })
    open.push(party)
    return party
  }
  const issue: Stage['issue'] = ({ who }, device) => access.issue({ ...who, device_id: device })

  const stage: Stage = {
    ...judge,
    access,
    patienceMs,
    open: openParty,
    issue,
    note: (text) => transcript.note('kit', 'note', text),
    person(name, side) {
      const [own, other] = side === 'caller' ? [roles.caller, roles.callee] : [roles.callee, roles.caller]
      const user_id = `kit-${name}-${mark}`
      return { name, who: { user_id, role: own, display_name: `Kit ${name}`, allowed_peer_role: other } }
    },
    async enter(person, options = {}) {
      const { isExtended = false, device, resume, can, answersPings = true, as = person.name, by } = options
      const { token, ws_url } = await issue(person, device)
      const headers = [by === 'header' ? `Authorization: Bearer ${token}` : `Sec-WebSocket-Protocol: jwt, ${token}`]
      const wsUrl = `${ws_url}${isExtended ? `?${queryOf(resume)}${can === undefined ? '' : `&can=${can.join()}`}` : ''}`
      const seq = resume?.seq ?? 0
      const party = openParty(as, { wsUrl, headers, isExtended, seq, answersPings })
      const hello = await party.next('WS3', 'auth.ok')
      judge.check('WS3', party.all[0]?.event === 'auth.ok', `${as} got something before auth.ok`)
      return { party, hello }
    },
    history: (token, query = '') =>
      access.request(`/v1/calls/history${query}`, { headers: { Authorization: `Bearer ${token}` } }),
  }
  return {
    stage,
    leave() {
      for (const party of open) party.cut()
    },
  }
}

/** Of the WebSocket URL of an extended session. */
export function queryOf(point: ResumePoint | undefined): string {
  if (point === undefined) return 'ext=1'
  const { session_id, epoch, seq, n } = point
  return new URLSearchParams({ ext: '1', resume: session_id, epoch, seq: String(seq), n: String(n) }).toString()
}
