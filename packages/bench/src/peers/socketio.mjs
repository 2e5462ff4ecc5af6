// The smallest Socket.IO relay: WebSocket transport only, the receiver looked up in a Map, no checks.
import { createServer } from 'node:http'
import { Server } from 'socket.io'

const http = createServer()
const io = new Server(http, { transports: ['websocket'], serveClient: false })
const clients = new Map()

io.on('connection', (socket) => {
  const id = socket.handshake.auth.id
  clients.set(id, socket)
  socket.on('webrtc.ice_candidate', (data) => {
    data.from = id
    clients.get(data.to)?.emit('webrtc.ice_candidate', data)
  })
  socket.on('disconnect', () => {
    if (clients.get(id) === socket) clients.delete(id)
  })
})
http.listen(0, '127.0.0.1', () => {
  console.log(`Socket.IO listens on http://127.0.0.1:${http.address().port}`)
})
