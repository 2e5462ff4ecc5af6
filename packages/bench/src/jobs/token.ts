// Requests over keep-alive connections, one in flight on each: session tokens, or the echo of the same body.
import { participantId } from '../candidate.ts'
import { type HttpAnswer, HttpConnection, postJson } from '../http-connection.ts'
import { loadBetween, readLoad } from '../proc.ts'
import { tokenIn, tokenRequest } from '../tokens.ts'
import { type Prepared, plainResult, type Result, type Shape, type TokenJob } from './job.ts'

const PARTICIPANTS = 1000

interface Course {
  running: boolean
  answers: number
}

export async function prepareToken(job: TokenJob): Promise<Prepared> {
  const ids = Array.from({ length: PARTICIPANTS }, (_, i) => participantId(i, 'caller'))
  const isService = job.target.system === 'ringwire'
  const requests = ids.map((id) =>
    isService ? tokenRequest(job.target.port, id) : postJson(job.target.port, '/', [], { user_id: id, ...echoBody }),
  )
  const connections = await Promise.all(
    Array.from({ length: job.connections }, () => HttpConnection.open(job.target.port)),
  )
  const check = isService ? (answer: HttpAnswer) => tokenIn(answer.body) : (answer: HttpAnswer) => answer.body
  return {
    run: (shape) => run(job, shape, connections, requests, check),
    release: async () => {
      for (const connection of connections) connection.close()
    },
  }
}

/** With `user_id`, as many bytes as the body of a token request. */
const echoBody = {
  product: 'bench',
  context_type: 'order',
  context_id: 'order-1',
  role: 'caller',
  display_name: 'A participant of the benchmark',
  allowed_peer_role: 'callee',
}

async function run(
  job: TokenJob,
  shape: Shape,
  connections: HttpConnection[],
  requests: Uint8Array[],
  check: (answer: HttpAnswer) => string,
): Promise<Result> {
  const course: Course = { running: true, answers: 0 }
  const seen = new Set<string>()
  const lanes = connections.map(async (connection, lane) => {
    for (let i = lane; course.running; i += connections.length) {
      const answer = await connection.request(requests[i % requests.length]!)
      if (answer.status !== 200) throw new Error(`Answered ${answer.status}: ${answer.body.slice(0, 300)}`)
      if (seen.size < PARTICIPANTS && i < PARTICIPANTS) seen.add(check(answer))
      course.answers++
    }
  })
  const [measured] = await Promise.all([measure(job, shape, course), ...lanes])
  if (seen.size !== PARTICIPANTS) throw new Error(`${PARTICIPANTS} participants, ${seen.size} different answers`)
  return measured
}

async function measure(job: TokenJob, shape: Shape, course: Course): Promise<Result> {
  await Bun.sleep(shape.warmupMs)
  const answersBefore = course.answers
  const before = readLoad(job.target.pid, job.target.core)
  await Bun.sleep(shape.measureMs)
  const answers = course.answers - answersBefore
  const load = loadBetween(before, readLoad(job.target.pid, job.target.core))
  course.running = false
  return plainResult(answers, load)
}
