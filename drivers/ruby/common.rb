# frozen_string_literal: true

# Options, clock, barrier, pacing and stamps.
module Common
  PRODUCER_SHIFT = 40
  SPIN_NS = 50_000
  # Time for answers to inserts in flight after a stop request.
  GRACE_S = 2.0
  # Pings before `ready`, one after the other, so that all drivers start equally warm.
  PINGS = 100
  # This driver does not report the server's reply that contained a message.
  NO_BATCH = 0xffff_ffff
  # Largest number of failed inserts with an event each.
  MAX_REPORTED = 20

  class Usage < StandardError; end

  def self.whole(low, high)
    lambda do |text|
      number = text.match?(/\A[0-9]+\z/) ? text.to_i : -1
      raise Usage, "must be a whole number from #{low} to #{high}" unless number.between?(low, high)

      number
    end
  end

  def self.words(*words)
    lambda do |text|
      raise Usage, "must be one of #{words.join(', ')}" unless words.include?(text)

      text
    end
  end

  SECONDS = lambda do |text|
    seconds = Float(text, exception: false) || 0
    raise Usage, 'must be above 0' unless seconds.positive? && seconds < 1e9

    seconds
  end
  TEXT = ->(text) { text }
  MOST = (1 << PRODUCER_SHIFT) - 1

  COMMON = {
    'database' => [TEXT, :required], 'collection' => [TEXT, :required], 'output' => [TEXT, :required],
    'messages' => [whole(0, MOST), :required], 'pool' => [whole(1, 100_000), 100],
    'clock' => [words('monotonic', 'realtime'), 'monotonic']
  }.freeze
  PRODUCE = COMMON.merge(
    'producer' => [whole(0, 65_535), 0], 'first' => [whole(0, MOST), 0], 'size' => [whole(0, 16_000_000), 0],
    'in-flight' => [->(text) { text == 'unbounded' ? nil : whole(1, 1_000_000).call(text) }, 1],
    'write-concern' => [->(text) { text == 'majority' ? text : whole(0, 50).call(text) }, 1],
    'journal' => [words('true', 'false'), nil], 'schedule' => [TEXT, nil]
  ).freeze
  CONSUME = COMMON.merge(
    'mode' => [words('tailable', 'change-stream', 'poll'), 'tailable'], 'producers' => [whole(1, 65_536), 1],
    'await-ms' => [whole(1, 3_600_000), 1000], 'batch-size' => [whole(1, 1_000_000), nil],
    'poll-ms' => [whole(0, 3_600_000), 1], 'idle-s' => [SECONDS, 30.0], 'delay-us' => [whole(0, 1_000_000_000), 0]
  ).freeze

  # Options by name, as symbols with underscores.
  def self.parse(arguments, known)
    options = known.to_h { |name, (_, default)| [name.tr('-', '_').to_sym, default] }
    arguments.each_slice(2) do |option, value|
      name = option.delete_prefix('--')
      raise Usage, "unknown option `#{option}`" unless option.start_with?('--') && known.key?(name)
      raise Usage, "option `#{option}` needs a value" if value.nil?

      begin
        options[name.tr('-', '_').to_sym] = known[name][0].call(value)
      rescue Usage => e
        raise Usage, "option `#{option}`: `#{value}` #{e.message}"
      end
    end
    options.each { |name, value| raise Usage, "option `--#{name}` is missing" if value == :required }
    raise Usage, 'the environment variable DYNO_URI is missing' if ENV['DYNO_URI'].to_s.empty?

    options
  end

  # Intended starts in ns after the start instant, nil for a closed loop.
  def self.schedule(options)
    return nil unless options[:schedule]

    entries = File.binread(options[:schedule]).unpack('Q<*')
    return entries if entries.size >= options[:messages]

    raise Usage, "option `--schedule`: #{entries.size} entries for #{options[:messages]} messages"
  rescue SystemCallError => e
    raise Usage, "option `--schedule`: #{e.message}"
  end

  # Padding; the same bytes in every driver.
  def self.padding(size)
    state = 42
    Array.new(size) { (state = (state * 1_664_525 + 1_013_904_223) & 0xffff_ffff) >> 24 }.pack('C*')
  end

  def self.emit(event)
    $stdout.write("#{JSON.generate(event)}\n")
  end

  def self.fail(code, message)
    $stderr.write("#{message.split.join(' ')}\n")
    exit!(code)
  end

  # The barrier on standard input, and all stop requests.
  class Control
    attr_reader :start_ns, :stopping, :clock
    attr_accessor :exit_code

    def initialize(clock)
      @clock = clock == 'realtime' ? Process::CLOCK_REALTIME : Process::CLOCK_MONOTONIC
      @exit_code = 0
      @started = Queue.new
      %w[INT TERM].each { |signal| Signal.trap(signal) { stop(130) } }
    end

    def now
      Process.clock_gettime(@clock, :nanosecond)
    end

    def stop(code)
      exit!(code) unless @start_ns
      @exit_code = code
      @stopping = true
    end

    # Reports readiness, and waits for the start.
    def ready
      $stdout.sync = true
      puts 'ready'
      Thread.new do
        while (line = $stdin.gets)
          words = line.split
          if words.size == 2 && words[0] == 'start' && !@start_ns
            @start_ns = Integer(words[1])
            @started << true
          elsif words == ['stop']
            stop(0)
          end
        end
        # Without a start, nothing is sent.
        exit!(0) unless @start_ns
      end
      @started.pop
    end

    # False if a stop request ended the wait.
    def wait_until(at_ns)
      while (left = at_ns - now).positive?
        return false if @stopping

        sleep([left - SPIN_NS, 100_000_000].min / 1e9) if left > SPIN_NS
      end
      !@stopping
    end
  end

  # Stamps: records of 32 bytes, on disk after at most a second.
  class Stamps
    def initialize(path)
      @file = File.open(path, 'wb')
      @lock = Mutex.new
      @closed = false
      @sent = @failed = 0
      Thread.new { loop { sleep(0.5) && flush } }
    rescue SystemCallError => e
      raise Usage, "option `--output`: #{e.message}"
    end

    def flush
      @lock.synchronize { @file.flush }
    end

    # Whether to report this error as an event.
    def produced(number, intended_ns, send_ns, ended_ns, error)
      record = [number, intended_ns, send_ns, error ? -ended_ns : ended_ns].pack('Q<q<q<q<')
      @lock.synchronize do
        next false if @closed

        @file.write(record)
        error ? @failed += 1 : @sent += 1
        error && @failed <= MAX_REPORTED
      end
    end

    def consumed(number, send_ns, received_ns, producer)
      record = [number, send_ns, received_ns, producer, NO_BATCH].pack('Q<q<q<L<L<')
      @lock.synchronize { @file.write(record) }
    end

    # The last event. Later answers have no stamp and are not counted.
    def close
      @lock.synchronize do
        @closed = true
        @file.flush
        { event: 'done', messages: @sent, failed: @failed }
      end
    end
  end
end
