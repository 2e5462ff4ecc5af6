import type { ResumePoint } from './extended-trace.ts'

/** A request that has no reply yet. */
export interface Asked {
  readonly n: number
  /** Without one no reply comes. */
  readonly requestId: string | undefined
}

/**
 * What a client of an extended session has to remember so that it can come back: where it is, and what it asked for
 * that has no reply [EXT4, RES1].
 */
export class ExtendedSession<A extends Asked> {
  /** '' before the first `auth.ok`. */
  id = ''
  epoch = ''
  /** Of the last push that was seen. */
  seq = 0
  /** The n of the last request whose reply was seen. */
  replied = 0
  private nextN = 1
  private unanswered: A[] = []

  /** Its position now, as a resume says it. */
  get point(): ResumePoint | undefined {
    return this.id === '' ? undefined : { session_id: this.id, epoch: this.epoch, seq: this.seq, n: this.replied }
  }

  /** The next request. */
  ask(make: (n: number) => A): A {
    const asked = make(this.nextN++)
    this.unanswered.push(asked)
    return asked
  }

  /** The request without a reply that is the oldest of these. */
  oldest(of: (asked: A) => boolean): A | undefined {
    return this.unanswered.find(of)
  }

  /** `auth.ok`: answers the requests to send again, and those of a session that is over. */
  open(data: { session_id: string; epoch: string; recovered: boolean; handled: number }): { again: A[]; lost: A[] } {
    const { recovered, handled } = data
    const isFirst = this.id === ''
    this.id = data.session_id
    this.epoch = data.epoch
    let lost: A[] = []
    if (recovered)
      this.unanswered = this.unanswered.filter(({ n, requestId }) => n > handled || requestId !== undefined)
    else {
      // Its numbers begin again. Requests from before the first one opened go with its first numbers.
      this.seq = 0
      this.replied = 0
      if (!isFirst) {
        lost = this.unanswered
        this.unanswered = []
        this.nextN = 1
      }
    }
    this.nextN = Math.max(this.nextN, handled + 1)
    return { again: this.unanswered.filter(({ n }) => n > handled), lost }
  }

  /** `session.reset`: the log was lost, and begins anew. */
  reset(data: { session_id: string; epoch: string }, seq: number): void {
    this.id = data.session_id
    this.epoch = data.epoch
    this.seq = seq
  }

  /** A reply; answers what it is the reply to. */
  reply(requestId: string): A | undefined {
    const asked = this.unanswered.find((each) => each.requestId === requestId)
    if (asked === undefined) return undefined
    this.replied = Math.max(this.replied, asked.n)
    // Requests take effect one after another: an earlier one that needs no reply is through.
    this.unanswered = this.unanswered.filter(
      (each) => each !== asked && (each.n > asked.n || each.requestId !== undefined),
    )
    return asked
  }
}

/** The query of a socket that goes on from there, or begins. */
export function queryOf(point: ResumePoint | undefined): string {
  if (point === undefined) return 'ext=1'
  const { session_id, epoch, seq, n } = point
  return new URLSearchParams({ ext: '1', resume: session_id, epoch, seq: String(seq), n: String(n) }).toString()
}
