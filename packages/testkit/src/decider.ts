import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from './patience.ts'

/** A question about an invite, as it arrived [HOOK5]. */
export interface Question {
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly data: {
    readonly call_uuid: string
    readonly caller: { readonly user_id: string; readonly role: string; readonly display_name: string }
    readonly callee?: { readonly user_id: string; readonly role: string }
    /** Instead of a callee. */
    readonly group?: { readonly group: string; readonly role: string }
    readonly metadata: Readonly<Record<string, unknown>> | null
  }
}

/** What a backend answers: JSON, a text as it is, a status, or nothing at all. */
export type Answer = object | string | number | 'hang'

/** The backend of a product that decides on its invites: a real endpoint on loopback. */
export class Decider {
  readonly questions: Question[] = []
  private readonly server: Server
  private readonly decide = new Map<string, (question: Question) => Answer | Promise<Answer>>()

  private constructor() {
    this.server = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const text = Buffer.concat(chunks).toString('utf8')
      const question: Question = { headers: request.headers, text, data: JSON.parse(text).data }
      this.questions.push(question)
      const answer = await (this.decide.get(calledIn(question)) ?? (() => ({ decision: 'allow' })))(question)
      if (answer === 'hang') return
      if (typeof answer === 'number') response.writeHead(answer).end()
      else response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
    })
  }

  static async open(): Promise<Decider> {
    const decider = new Decider()
    await new Promise<void>((resolve) => decider.server.listen(0, '127.0.0.1', resolve))
    return decider
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/invites`
  }

  /** What is answered about invites of this callee, or of the group of this name, from now on. */
  about(calleeId: string, decide: (question: Question) => Answer | Promise<Answer>): void {
    this.decide.set(calleeId, decide)
  }

  of(calleeId: string): Question[] {
    return this.questions.filter((question) => calledIn(question) === calleeId)
  }

  async asked(calleeId: string, times = 1): Promise<void> {
    await until(`the backend is asked ${times} times`, () => this.of(calleeId).length >= times)
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }
}

function calledIn({ data: { callee, group } }: Question): string {
  return callee?.user_id ?? group?.group ?? ''
}
