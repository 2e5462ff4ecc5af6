// The plainest service that Bun can be: a WebSocket relay that parses, looks the receiver up, adds the sender and
// writes, with no check at all; and an HTTP echo of JSON. `--forward` carries the bytes as they are to the other one
// of a pair and writes once per turn of the event loop: what is left is sockets, so it shows what the generator can do.
// `--coalesce` is the relay with that way of writing.
import type { ServerWebSocket } from 'bun'

interface Client {
  id: string
  waiting: string[]
}

const forward = process.argv.includes('--forward')
const coalesce = process.argv.includes('--coalesce')
const clients = new Map<string, ServerWebSocket<Client>>()
let dirty: ServerWebSocket<Client>[] = []

function flush(): void {
  const sockets = dirty
  dirty = []
  for (const socket of sockets) {
    const texts = socket.data.waiting
    socket.data.waiting = []
    socket.cork(() => {
      for (const text of texts) socket.send(text)
    })
  }
}

function sendLater(socket: ServerWebSocket<Client>, text: string): void {
  if (socket.data.waiting.push(text) > 1) return
  if (dirty.push(socket) === 1) setImmediate(flush)
}

function otherOf(id: string): string {
  return id.endsWith('-caller') ? id.replace('-caller', '-callee') : id.replace('-callee', '-caller')
}

const server = Bun.serve<Client>({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request, self) {
    if (request.method === 'POST') return Response.json(await request.json())
    const id = new URL(request.url).searchParams.get('id') ?? ''
    if (self.upgrade(request, { data: { id, waiting: [] } })) return undefined
    return new Response('A WebSocket is expected', { status: 426 })
  },
  websocket: {
    perMessageDeflate: false,
    open(socket) {
      clients.set(socket.data.id, socket)
    },
    message(socket, text) {
      if (forward) {
        const peer = clients.get(otherOf(socket.data.id))
        if (peer !== undefined) sendLater(peer, text as string)
        return
      }
      const message = JSON.parse(text as string)
      message.from = socket.data.id
      const peer = clients.get(message.to)
      if (peer === undefined) return
      if (coalesce) sendLater(peer, JSON.stringify(message))
      else peer.send(JSON.stringify(message))
    },
    close(socket) {
      if (clients.get(socket.data.id) === socket) clients.delete(socket.data.id)
    },
  },
})
console.log(`bare Bun listens on http://127.0.0.1:${server.port}`)
