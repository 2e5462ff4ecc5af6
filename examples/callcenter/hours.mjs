// When somebody answers. The file is read for each question, so that a change counts at once. Yours is a table of your database.
import { existsSync, readFileSync } from 'node:fs'

const always = { days: ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'], from: '00:00', to: '24:00', zone: 'UTC' }

export function openHours(file) {
  const hours = () => (existsSync(file) ? { ...always, ...JSON.parse(readFileSync(file, 'utf8')) } : always)
  return {
    isOpen: (at = new Date()) => isWithin(hours(), at),
    /** For people. */
    text() {
      const { days, from, to } = hours()
      return `${days.join(', ')}, ${from} to ${to}`
    },
  }
}

/** The day and the time are those of the zone, also when its clocks change. */
function isWithin({ days, from, to, zone }, at) {
  const format = { timeZone: zone, weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
  const parts = new Intl.DateTimeFormat('en-GB', format).formatToParts(at)
  const { weekday, hour, minute } = Object.fromEntries(parts.map(({ type, value }) => [type, value]))
  const time = `${hour}:${minute}`
  return days.includes(weekday) && from <= time && time < to
}
