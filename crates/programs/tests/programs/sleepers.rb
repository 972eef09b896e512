# Several threads that sleep and wake at the same times.
require 'json'
require 'set'

$stdout.sync = true
lock = Mutex.new
node = nil
others = []
seen = Set.new
send_to = lambda { |dest, body| $stdout.puts JSON.generate(src: node, dest: dest, body: body) }

3.times do |number|
  Thread.new do
    loop do
      sleep 0.25
      lock.synchronize do
        values = seen.select { |value| value % 3 == number }
        others.each { |other| send_to.call(other, type: 'tell', values: values) } unless values.empty?
      end
    end
  end
end

while (line = $stdin.gets)
  message = JSON.parse(line)
  body = message['body']
  reply = ->(answer) { send_to.call(message['src'], answer.merge(in_reply_to: body['msg_id'])) }
  lock.synchronize do
    case body['type']
    when 'init'
      node = body['node_id']
      others = body['node_ids'] - [node]
      reply.call(type: 'init_ok')
    when 'add'
      seen << body['element']
      reply.call(type: 'add_ok')
    when 'tell' then seen.merge(body['values'])
    when 'read' then reply.call(type: 'read_ok', value: seen.to_a)
    end
  end
end
