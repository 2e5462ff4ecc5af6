<?php
/**
 * A backend in PHP 8.1 or newer, with nothing but PHP: session tokens, verified webhooks, and the decision on each invite.
 *
 *     php -S 127.0.0.1:3000 backend.php
 *
 * POST /sign-in?name=ann   stands for the sign-in that your application has
 * POST /call-token         a token for who is signed in, and nobody else
 * POST /webhooks           what happened to calls
 * POST /invites            may this call ring?
 */

declare(strict_types=1);

// Your users. Whom they may call is your decision, too.
const USERS = [
    'ann' => ['user_id' => 'ann', 'display_name' => 'Ann', 'role' => 'customer', 'allowed_peer_role' => 'agent'],
    'ben' => ['user_id' => 'ben', 'display_name' => 'Ben', 'role' => 'agent', 'allowed_peer_role' => 'customer'],
    'eve' => ['user_id' => 'eve', 'display_name' => 'Eve', 'role' => 'customer', 'allowed_peer_role' => 'agent'],
];
// Who may not call anybody for now.
const BLOCKED = ['eve'];
// A signature that is older proves nothing: whoever saw it could send it again.
const MOST_AGE_S = 300;

/** A setting of the environment. Without it nothing here works, so the answer is 500 and the log of PHP says why. */
function setting(string $name): string
{
    $value = getenv($name);
    if ($value === false || $value === '') {
        throw new RuntimeException("Set $name: see README.md beside this file.");
    }
    return $value;
}

/** Whether Ringwire signed these bytes with this secret, as Standard Webhooks has it. */
function verified(string $body, string $secret): bool
{
    $sentAt = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret), true);
    if ($key === false || !ctype_digit($sentAt) || abs(time() - (int) $sentAt) > MOST_AGE_S) {
        return false;
    }
    $signed = ($_SERVER['HTTP_WEBHOOK_ID'] ?? '') . ".$sentAt.$body";
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    // There are two signatures while a secret is being changed.
    foreach (explode(' ', $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $given) {
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}

/** The status and the body of what Ringwire answers. The secret of the product never leaves this process. */
function askForToken(array $user): array
{
    $answer = @file_get_contents(setting('RINGWIRE_URL') . '/v1/call/session-token', false, stream_context_create([
        'http' => [
            'method' => 'POST',
            'header' => [
                'Content-Type: application/json',
                'X-SVC-Product-Key-ID: ' . setting('RINGWIRE_KEY_ID'),
                'X-SVC-Product-Secret: ' . setting('RINGWIRE_KEY_SECRET'),
            ],
            'content' => json_encode($user + ['context_type' => 'order', 'context_id' => '1042']),
            'timeout' => 10,
            // A refusal has a code in its body.
            'ignore_errors' => true,
        ],
    ]));
    if ($answer === false) {
        return [503, '{"success":false,"error":{"code":"RINGWIRE_AWAY"}}'];
    }
    return [(int) explode(' ', $http_response_header[0])[1], $answer];
}

/** Whether it is the first time that this webhook comes. A unique key of your database does the same. */
function isNew(string $id): bool
{
    $folder = getenv('SEEN_DIR') ?: sys_get_temp_dir() . '/ringwire-webhooks';
    @mkdir($folder, 0700, true);
    return @mkdir($folder . '/' . hash('sha256', $id));
}

function decide(array $invite): array
{
    if (in_array($invite['caller']['user_id'], BLOCKED, true)) {
        return ['decision' => 'refuse', 'reason' => 'blocked'];
    }
    return ['decision' => 'allow'];
}

function answer(int $status, string $body = ''): void
{
    http_response_code($status);
    header('Cache-Control: no-store');
    if ($body !== '') {
        header('Content-Type: application/json');
    }
    echo $body;
}

function signIn(): void
{
    $name = $_GET['name'] ?? '';
    if (!is_string($name) || !isset(USERS[$name])) {
        answer(403);
        return;
    }
    openSession();
    session_regenerate_id(true);
    $_SESSION['name'] = $name;
    answer(204);
}

function callToken(): void
{
    openSession();
    $user = USERS[$_SESSION['name'] ?? ''] ?? null;
    // Ringwire may take a moment, and PHP lets one request at a time into a session.
    session_write_close();
    if ($user === null) {
        answer(401);
        return;
    }
    answer(...askForToken($user));
}

function openSession(): void
{
    session_start(['name' => 'session', 'cookie_httponly' => true, 'cookie_samesite' => 'Strict', 'use_strict_mode' => true]);
}

function webhook(string $body): void
{
    // Verify before you parse.
    if (!verified($body, setting('WEBHOOK_SECRET'))) {
        answer(401);
        return;
    }
    // The same one may come again: go by its id.
    if (isNew($_SERVER['HTTP_WEBHOOK_ID'])) {
        $event = json_decode($body, true, flags: JSON_THROW_ON_ERROR);
        file_put_contents('php://stdout', "{$event['type']} {$event['data']['call_uuid']}\n");
    }
    answer(204);
}

function invite(string $body): void
{
    if (!verified($body, setting('INVITE_SECRET'))) {
        answer(401);
        return;
    }
    answer(200, json_encode(decide(json_decode($body, true, flags: JSON_THROW_ON_ERROR)['data'])));
}

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
match ($_SERVER['REQUEST_METHOD'] . ' ' . $path) {
    'POST /sign-in' => signIn(),
    'POST /call-token' => callToken(),
    'POST /webhooks' => webhook(file_get_contents('php://input')),
    'POST /invites' => invite(file_get_contents('php://input')),
    default => answer(404),
};
