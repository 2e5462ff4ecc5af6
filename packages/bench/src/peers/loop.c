/*
 * The least that a WebSocket relay can do: epoll, frames unmasked, the receiver looked up in a hash table, the sender's
 * name written in its place, and one write for each socket and turn. No check but those that keep it from crashing.
 * A client is /?id=NAME, and all names are ID_BYTES long. The text of a message begins with the receiver's name.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ID_BYTES 26
#define TABLE_SIZE 65536 /* A power of two; the generator opens 20,000 sockets at most. */
#define MOST_EVENTS 512
#define INPUT_BYTES (1 << 18)
#define LONGEST_PAYLOAD 65535
#define WEBSOCKET_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

enum { TEXT = 0x1, CLOSE = 0x8, PING = 0x9 };

typedef struct connection {
  int fd;
  int is_upgraded, is_named, is_dirty, waits_to_write;
  char id[ID_BYTES];
  struct connection *next; /* With the same hash. */
  uint8_t *rest;           /* The part of a frame or of the request that has come. */
  size_t rest_bytes;
  uint8_t *out;
  size_t out_bytes, out_room;
} connection;

static int poller;
static connection *table[TABLE_SIZE];
static connection **dirty;
static size_t dirty_count, dirty_room;
static uint8_t input[INPUT_BYTES];

static void *must(void *memory) {
  if (memory == NULL) {
    fprintf(stderr, "no memory\n");
    exit(1);
  }
  return memory;
}

static unsigned hash(const void *id) {
  const uint8_t *bytes = id;
  uint32_t value = 2166136261u; /* FNV-1a */
  for (int i = 0; i < ID_BYTES; i++) value = (value ^ bytes[i]) * 16777619u;
  return (value ^ value >> 16) & (TABLE_SIZE - 1);
}

static connection *find(const void *id) {
  connection *found = table[hash(id)];
  while (found != NULL && memcmp(found->id, id, ID_BYTES) != 0) found = found->next;
  return found;
}

static void forget(connection *self) {
  connection **at = &table[hash(self->id)];
  while (*at != NULL && *at != self) at = &(*at)->next;
  if (*at == self) *at = self->next;
}

static void enter(connection *self, const char *id) {
  connection *older = find(id);
  if (older != NULL) {
    forget(older);
    older->is_named = 0;
  }
  memcpy(self->id, id, ID_BYTES);
  self->is_named = 1;
  self->next = table[hash(id)];
  table[hash(id)] = self;
}

static void end(connection *self) {
  if (self->is_named) forget(self);
  for (size_t i = 0; self->is_dirty && i < dirty_count; i++)
    if (dirty[i] == self) dirty[i] = NULL;
  close(self->fd);
  free(self->rest);
  free(self->out);
  free(self);
}

/* Room for so many bytes more, which the caller fills: they go out at the end of the turn. */
static uint8_t *reserve(connection *self, size_t bytes) {
  if (self->out_bytes + bytes > self->out_room) {
    self->out_room = (self->out_bytes + bytes) * 2;
    self->out = must(realloc(self->out, self->out_room));
  }
  if (!self->is_dirty) {
    self->is_dirty = 1;
    if (dirty_count == dirty_room) {
      dirty_room = dirty_room * 2 + 64;
      dirty = must(realloc(dirty, dirty_room * sizeof *dirty));
    }
    dirty[dirty_count++] = self;
  }
  self->out_bytes += bytes;
  return self->out + self->out_bytes - bytes;
}

static void watch(connection *self, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = self};
  epoll_ctl(poller, EPOLL_CTL_MOD, self->fd, &event);
}

/* 0 when the connection is gone. */
static int flush(connection *self) {
  ssize_t written = write(self->fd, self->out, self->out_bytes);
  if (written < 0 && errno != EAGAIN) return 0;
  if (written > 0) {
    self->out_bytes -= written;
    memmove(self->out, self->out + written, self->out_bytes);
  }
  if (self->out_bytes == 0) {
    free(self->out);
    self->out = NULL;
    self->out_room = 0;
  }
  if (self->waits_to_write != (self->out_bytes > 0)) {
    self->waits_to_write = self->out_bytes > 0;
    watch(self, self->waits_to_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }
  return 1;
}

static uint32_t rotate(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

/* RFC 3174, of at most 119 bytes: two blocks. */
static void sha1(const char *text, size_t length, uint8_t digest[20]) {
  uint32_t h[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  uint8_t blocks[128] = {0};
  size_t blocks_bytes = length < 56 ? 64 : 128;
  memcpy(blocks, text, length);
  blocks[length] = 0x80;
  blocks[blocks_bytes - 2] = length * 8 >> 8;
  blocks[blocks_bytes - 1] = length * 8;
  for (size_t block = 0; block < blocks_bytes; block += 64) {
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 80; i++) {
      const uint8_t *at = blocks + block + i * 4;
      w[i] = i < 16 ? (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]
                    : rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
      uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
      uint32_t k = i < 20 ? 0x5A827999 : i < 40 ? 0x6ED9EBA1 : i < 60 ? 0x8F1BBCDC : 0xCA62C1D6;
      uint32_t next = rotate(a, 5) + f + e + k + w[i];
      e = d, d = c, c = rotate(b, 30), b = a, a = next;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
  }
  for (int i = 0; i < 20; i++) digest[i] = h[i / 4] >> (24 - i % 4 * 8);
}

static void base64(const uint8_t bytes[20], char text[29]) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int i = 0; i < 28; i++) {
    int bit = i * 6, at = bit / 8;
    unsigned pair = bytes[at] << 8 | (at < 19 ? bytes[at + 1] : 0);
    text[i] = bit < 160 ? digits[pair >> (10 - bit % 8) & 63] : '=';
  }
  text[27] = '=';
  text[28] = 0;
}

/* The length of the request with its empty line, 0 where it is not whole, -1 where it is not what was expected. */
static long upgrade(connection *self, const uint8_t *bytes, size_t length) {
  const char *request = (const char *)bytes;
  const char *last = memmem(request, length, "\r\n\r\n", 4);
  if (last == NULL) return 0;
  size_t request_bytes = last + 4 - request;
  const char *id = memmem(request, request_bytes, "id=", 3);
  const char *key = memmem(request, request_bytes, "Sec-WebSocket-Key: ", 19);
  if (id == NULL || id + 3 + ID_BYTES > last || key == NULL || key + 19 + 24 > last) return -1;
  char text[24 + sizeof WEBSOCKET_GUID], accept[29], answer[160];
  uint8_t digest[20];
  memcpy(text, key + 19, 24);
  memcpy(text + 24, WEBSOCKET_GUID, sizeof WEBSOCKET_GUID);
  sha1(text, strlen(text), digest);
  base64(digest, accept);
  int answer_bytes = snprintf(answer, sizeof answer,
                              "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                              "Sec-WebSocket-Accept: %s\r\n\r\n",
                              accept);
  memcpy(reserve(self, answer_bytes), answer, answer_bytes);
  enter(self, id + 3);
  self->is_upgraded = 1;
  return request_bytes;
}

static void unmask(uint8_t *payload, size_t length, const uint8_t *key) {
  uint64_t mask, word;
  memcpy(&mask, key, 4);
  memcpy((uint8_t *)&mask + 4, key, 4);
  size_t at = 0;
  for (; at + 8 <= length; at += 8) {
    memcpy(&word, payload + at, 8);
    word ^= mask;
    memcpy(payload + at, &word, 8);
  }
  for (; at < length; at++) payload[at] ^= key[at & 3];
}

static uint8_t *head(connection *to, int opcode, size_t length) {
  uint8_t *frame = reserve(to, (length < 126 ? 2 : 4) + length);
  frame[0] = 0x80 | opcode;
  frame[1] = length < 126 ? length : 126;
  if (length < 126) return frame + 2;
  frame[2] = length >> 8;
  frame[3] = length;
  return frame + 4;
}

static void relay(connection *from, const uint8_t *payload, size_t length) {
  connection *to = length < ID_BYTES ? NULL : find(payload);
  if (to == NULL) return;
  uint8_t *at = head(to, TEXT, length);
  memcpy(at, from->id, ID_BYTES);
  memcpy(at + ID_BYTES, payload + ID_BYTES, length - ID_BYTES);
}

/* The length of the first frame, 0 where it is not whole, -1 where the connection is over. */
static long take(connection *self, uint8_t *bytes, size_t length) {
  if (length < 2) return 0;
  size_t payload_bytes = bytes[1] & 0x7f, head_bytes = 6;
  if (payload_bytes == 127 || !(bytes[0] & 0x80) || !(bytes[1] & 0x80)) return -1;
  if (payload_bytes == 126) {
    if (length < 4) return 0;
    payload_bytes = bytes[2] << 8 | bytes[3];
    head_bytes = 8;
  }
  if (length < head_bytes + payload_bytes) return 0;
  uint8_t *payload = bytes + head_bytes;
  unmask(payload, payload_bytes, payload - 4);
  int opcode = bytes[0] & 0x0f;
  if (opcode == CLOSE) return -1;
  if (opcode == TEXT) relay(self, payload, payload_bytes);
  if (opcode == PING) memcpy(head(self, 0xa, payload_bytes), payload, payload_bytes);
  return head_bytes + payload_bytes;
}

/* 0 when the connection is over. */
static int readable(connection *self) {
  size_t have = self->rest_bytes;
  memcpy(input, self->rest == NULL ? input : self->rest, have);
  ssize_t came = read(self->fd, input + have, INPUT_BYTES - have);
  if (came < 0 && errno == EAGAIN) return 1;
  if (came <= 0) return 0;
  have += came;
  size_t at = 0;
  for (long taken = 1; taken > 0; at += taken) {
    taken = self->is_upgraded ? take(self, input + at, have - at) : upgrade(self, input + at, have - at);
    if (taken < 0) return 0;
  }
  self->rest_bytes = have - at;
  if (self->rest_bytes > LONGEST_PAYLOAD + 8) return 0;
  if (self->rest_bytes == 0) {
    free(self->rest);
    self->rest = NULL;
    return 1;
  }
  self->rest = must(realloc(self->rest, self->rest_bytes));
  memcpy(self->rest, input + at, self->rest_bytes);
  return 1;
}

static void accept_all(int listener) {
  int fd, on = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    connection *client = must(calloc(1, sizeof *client));
    client->fd = fd;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
  }
}

static int listen_somewhere(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t address_bytes = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 4096) != 0) {
    perror("listen");
    exit(1);
  }
  getsockname(listener, (struct sockaddr *)&address, &address_bytes);
  printf("the loop listens on http://127.0.0.1:%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return listener;
}

int main(void) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  poller = epoll_create1(0);
  int listener = listen_somewhere();
  struct epoll_event listening = {.events = EPOLLIN, .data.ptr = NULL}, events[MOST_EVENTS];
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &listening);
  for (;;) {
    int count = epoll_wait(poller, events, MOST_EVENTS, -1);
    for (int i = 0; i < count; i++) {
      connection *client = events[i].data.ptr;
      if (client == NULL) accept_all(listener);
      else if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !readable(client)) end(client);
      else if (events[i].events & EPOLLOUT && !flush(client)) end(client);
    }
    for (size_t i = 0; i < dirty_count; i++) {
      connection *client = dirty[i];
      if (client == NULL) continue;
      client->is_dirty = 0;
      if (!client->waits_to_write && !flush(client)) end(client);
    }
    dirty_count = 0;
  }
}
